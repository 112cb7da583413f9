"""The matrix-product kernels as LLVM IR: they call BLAS panel by panel, and an epilogue while a panel is in cache."""

from __future__ import annotations

_GEMM = """
; C = A @ B + beta * C for every batch, one panel of C's rows (or columns) an item, then the epilogue on the same panel.
define void @genesis_gemm_TYPE(i64 %item.first, i64 %item.end, ptr %words, i64 %worker) {
entry:
  %gemm = call ptr @pointer(ptr %words, i64 0)
  %trans.a = call i64 @word(ptr %words, i64 1)
  %trans.b = call i64 @word(ptr %words, i64 2)
  %m = call i64 @word(ptr %words, i64 3)
  %n = call i64 @word(ptr %words, i64 4)
  %k = call i64 @word(ptr %words, i64 5)
  %a = call ptr @pointer(ptr %words, i64 6)
  %lda = call i64 @word(ptr %words, i64 7)
  %b = call ptr @pointer(ptr %words, i64 8)
  %ldb = call i64 @word(ptr %words, i64 9)
  %c = call ptr @pointer(ptr %words, i64 10)
  %ldc = call i64 @word(ptr %words, i64 11)
  %batch.inner = call i64 @word(ptr %words, i64 13)
  %a.stride0 = call i64 @word(ptr %words, i64 14)
  %a.stride1 = call i64 @word(ptr %words, i64 15)
  %b.stride0 = call i64 @word(ptr %words, i64 16)
  %b.stride1 = call i64 @word(ptr %words, i64 17)
  %c.stride0 = call i64 @word(ptr %words, i64 18)
  %c.stride1 = call i64 @word(ptr %words, i64 19)
  %panels = call i64 @word(ptr %words, i64 20)
  %split = call i64 @word(ptr %words, i64 21)
  %beta.bits = call i64 @word(ptr %words, i64 22)
  %epilogue = call ptr @pointer(ptr %words, i64 23)
  %epilogue.words = call ptr @pointer(ptr %words, i64 24)
  %has.epilogue = icmp ne ptr %epilogue, null
  %beta.double = bitcast i64 %beta.bits to double
  %beta = BETA

  %transposed.a = icmp ne i64 %trans.a, 0
  %transposed.b = icmp ne i64 %trans.b, 0
  %by.columns = icmp ne i64 %split, 0
  %order.a = select i1 %transposed.a, i32 112, i32 111    ; CblasTrans, CblasNoTrans
  %order.b = select i1 %transposed.b, i32 112, i32 111
  %extent = select i1 %by.columns, i64 %n, i64 %m         ; of the axis that is split into panels
  %a.along = select i1 %transposed.a, i64 1, i64 %lda     ; elements from one row of the product to the next, in A,
  %b.along = select i1 %transposed.b, i64 %ldb, i64 1     ; from one column to the next, in B,
  %c.along = select i1 %by.columns, i64 1, i64 %ldc       ; and from one of either in C
  %a.step = select i1 %by.columns, i64 0, i64 %a.along
  %b.step = select i1 %by.columns, i64 %b.along, i64 0
  %rounding = sub i64 %panels, 1
  %rounded = add i64 %extent, %rounding
  %height = udiv i64 %rounded, %panels
  br label %next

next:
  %item = phi i64 [ %item.first, %entry ], [ %item.next, %skip ]
  %more = icmp slt i64 %item, %item.end
  br i1 %more, label %one, label %finished
one:
  %item.next = add i64 %item, 1
  %panel = urem i64 %item, %panels
  %batch = udiv i64 %item, %panels
  %batch1 = urem i64 %batch, %batch.inner
  %batch0 = udiv i64 %batch, %batch.inner
  %lo = mul i64 %panel, %height
  %lo.next = add i64 %lo, %height
  %hi = call i64 @llvm.umin.i64(i64 %lo.next, i64 %extent)
  %some = icmp ult i64 %lo, %hi
  br i1 %some, label %multiply, label %skip

multiply:
  %size = sub i64 %hi, %lo
  %rows = select i1 %by.columns, i64 %m, i64 %size
  %columns = select i1 %by.columns, i64 %size, i64 %n
  %a.panel = call ptr @place(ptr %a, i64 %batch0, i64 %a.stride0, i64 %batch1, i64 %a.stride1, i64 %lo, i64 %a.step)
  %b.panel = call ptr @place(ptr %b, i64 %batch0, i64 %b.stride0, i64 %batch1, i64 %b.stride1, i64 %lo, i64 %b.step)
  %c.panel = call ptr @place(ptr %c, i64 %batch0, i64 %c.stride0, i64 %batch1, i64 %c.stride1, i64 %lo, i64 %c.along)
  call void %gemm(i32 101, i32 %order.a, i32 %order.b, i64 %rows, i64 %columns, i64 %k,
                  TYPE 1.0, ptr %a.panel, i64 %lda, ptr %b.panel, i64 %ldb, TYPE %beta, ptr %c.panel, i64 %ldc)
  br i1 %has.epilogue, label %finish, label %skip
finish:
  %batch.base = mul i64 %batch, %extent
  %first = add i64 %batch.base, %lo
  %last = add i64 %batch.base, %hi
  call void %epilogue(i64 %first, i64 %last, ptr %epilogue.words, i64 %worker)
  br label %skip
skip:
  br label %next
finished:
  ret void
}

define internal i64 @word(ptr %words, i64 %index) alwaysinline {
  %at = getelementptr i64, ptr %words, i64 %index
  %word = load i64, ptr %at
  ret i64 %word
}

define internal ptr @pointer(ptr %words, i64 %index) alwaysinline {
  %at = getelementptr ptr, ptr %words, i64 %index
  %pointer = load ptr, ptr %at
  ret ptr %pointer
}

; The address of a panel: two batch strides in bytes, then `lo` steps of elements.
define internal ptr @place(ptr %base, i64 %i0, i64 %stride0, i64 %i1, i64 %stride1, i64 %lo, i64 %step) alwaysinline {
  %offset0 = mul i64 %i0, %stride0
  %offset1 = mul i64 %i1, %stride1
  %offset = add i64 %offset0, %offset1
  %matrix = getelementptr i8, ptr %base, i64 %offset
  %elements = mul i64 %lo, %step
  %panel = getelementptr TYPE, ptr %matrix, i64 %elements
  ret ptr %panel
}

declare i64 @llvm.umin.i64(i64, i64)
"""


def kernel_ir(element: str) -> str:
    """The module that defines the kernel `genesis_gemm_float` or `genesis_gemm_double`."""
    beta = "fptrunc double %beta.double to float" if element == "float" else "fadd double %beta.double, -0.0"
    return _GEMM.replace("TYPE", element).replace("BETA", beta)
