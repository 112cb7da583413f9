"""A classifier with batches from a loader, a schedule, clipped gradients and a saved state."""

import io

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset

numbers = np.random.RandomState(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.fc = nn.Linear(4 * 4 * 4, 3)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv1(x))), 2)
        return F.log_softmax(self.fc(torch.flatten(x, 1)), dim=1)


def fill(model):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.from_numpy(numbers.randn(*parameter.shape).astype(np.float32) * 0.1))


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
images = torch.from_numpy(numbers.randn(24, 1, 8, 8).astype(np.float32))
labels = torch.from_numpy(numbers.randint(0, 3, 24))
loader = DataLoader(TensorDataset(images, labels), batch_size=8, shuffle=False, num_workers=0, pin_memory=False)
model = Net().to(device)
fill(model)
optimizer = torch.optim.AdamW([{"params": model.fc.parameters(), "lr": 1e-2}, {"params": model.conv1.parameters()}], lr=3e-3)
scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
for _epoch in range(2):
    model.train()
    for data, target in loader:
        data, target = data.to(device, non_blocking=True), target.to(device)
        optimizer.zero_grad(set_to_none=True)
        loss = F.nll_loss(model(data), target)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print(f"loss {loss.item():.5f} norm {norm.item():.4f}")
    scheduler.step()
    print(scheduler.get_last_lr())
model.eval()
with torch.inference_mode():
    predicted = model(images.to(device)).argmax(dim=1, keepdim=True)
    print((predicted.eq(labels.view_as(predicted)).sum() / len(labels)).item())
file = io.BytesIO()
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
file.seek(0)
saved = torch.load(file, map_location="cpu", weights_only=True)
print(list(saved["model"]), saved["model"]["fc.bias"].shape, model)
