"""Drives a page in Chromium, as it comes with Qt: `python browser.py PAGE`, steps as JSON on stdin, answers on stdout.

Steps: ["run", script], ["click", selector], ["double", selector], ["key", name], ["type", text], ["colour", x, y],
["shot", file]. What the page says on its console is an error.
"""

import json
import os
import sys

os.environ |= {
    "QT_QPA_PLATFORM": "offscreen", "QTWEBENGINE_DISABLE_SANDBOX": "1",
    "QTWEBENGINE_CHROMIUM_FLAGS": "--no-sandbox --disable-gpu --blink-settings=preferredColorScheme=1",
}

from PySide6.QtCore import QEventLoop, QPoint, Qt, QTimer, QUrl
from PySide6.QtTest import QTest
from PySide6.QtWebEngineCore import QWebEnginePage
from PySide6.QtWebEngineWidgets import QWebEngineView
from PySide6.QtWidgets import QApplication

COUNTING = """() => {
    window.seen = 0;
    for (const kind of ['keyup', 'click']) addEventListener(kind, () => window.seen++, true);
}"""


class Page(QWebEnginePage):
    def __init__(self, parent):
        super().__init__(parent)
        self.said = []

    def javaScriptConsoleMessage(self, level, message, line, source):
        self.said.append(f"{message} (line {line})")


class Browser:
    def __init__(self, page: str) -> None:
        self.view = QWebEngineView()
        self.page = Page(self.view)
        self.view.setPage(self.page)
        self.view.resize(1600, 1000)
        self.view.show()
        loop = QEventLoop()
        self.view.loadFinished.connect(lambda ok: loop.quit())
        self.view.load(QUrl.fromLocalFile(os.path.abspath(page)))
        loop.exec()
        self.run(f"({COUNTING})()")

    def run(self, script: str):
        """The value of an expression."""
        loop, answers = QEventLoop(), []
        self.page.runJavaScript(f"JSON.stringify({script})", 0, lambda answer: (answers.append(answer), loop.quit()))
        loop.exec()
        return json.loads(answers[0] or "null")

    def click(self, selector: str, double: bool = False) -> None:
        box = f"document.querySelector({selector!r}).getBoundingClientRect()"
        x, y = self.run(f"(b => [b.x + b.width / 2, b.y + b.height / 2])({box})")
        act = QTest.mouseDClick if double else QTest.mouseClick
        seen = self.run("window.seen")
        act(self.view.focusProxy(), Qt.LeftButton, Qt.NoModifier, QPoint(round(x), round(y)))
        self.until(seen + 1)

    def double(self, selector: str) -> None:
        self.click(selector, double=True)

    def key(self, name: str) -> None:
        seen = self.run("window.seen")
        QTest.keyClick(self.view.focusProxy(), getattr(Qt, f"Key_{name}"))
        self.until(seen + 1)

    def type(self, text: str) -> None:
        seen = self.run("window.seen")
        QTest.keyClicks(self.view.focusProxy(), text)
        self.until(seen + len(text))

    def colour(self, x: int, y: int) -> str:
        self.wait(300)
        return self.view.grab().toImage().pixelColor(x, y).name()

    def shot(self, file: str) -> bool:
        self.wait(300)
        return self.view.grab().save(file)

    def until(self, seen: int) -> None:
        """Wait for the page to have seen so many keys and clicks; it draws meanwhile."""
        for _ in range(200):
            self.wait(25)
            if self.run("window.seen") >= seen:
                return
        raise TimeoutError(f"the page has not seen what was sent in 5 s: {self.page.said}")

    def wait(self, milliseconds: int = 60) -> None:
        loop = QEventLoop()
        QTimer.singleShot(milliseconds, loop.quit)
        loop.exec()


if __name__ == "__main__":
    application = QApplication(sys.argv[:1])
    browser = Browser(sys.argv[1])
    answers = [getattr(browser, step)(*arguments) for step, *arguments in json.load(sys.stdin)]
    print(json.dumps({"answers": answers, "said": browser.page.said}))
    sys.stdout.flush()
    os._exit(0)  # Chromium takes seconds to leave
