"""The words of a Mersenne Twister as LLVM IR.

    genesis_twister_words(ptr key, ptr out, i64 count)      count words; the position of the next one follows the key
"""

from __future__ import annotations

KEY = 624
_SHIFT = 397

WORDS = f"""
define void @genesis_twister_words(ptr %key, ptr %out, i64 %count) {{
entry:
  %keys = alloca [{2 * KEY} x i32], align 32
  %tempered = alloca [{KEY} x i32], align 32
  %position.at = getelementptr i32, ptr %key, i64 {KEY}
  %position.word = load i32, ptr %position.at
  %position = zext i32 %position.word to i64
next:
  %from = phi i64 [ %position, %entry ], [ %to, %give ]
  %given = phi i64 [ 0, %entry ], [ %given.next, %give ]
  %left = sub i64 %count, %given
  if i64 %left == 0: %finished
more:
  if i64 %from ult {KEY}: %temper
  call void @llvm.memcpy.p0.p0.i64(ptr %keys, ptr %key, i64 {4 * KEY}, i1 0)
  for %i = 0 ult {KEY} by 8:
  %here.at = getelementptr i32, ptr %keys, i64 %i
  %here = load <8 x i32>, ptr %here.at, align 4
  %here.at.next = getelementptr i32, ptr %here.at, i64 1
  %following = load <8 x i32>, ptr %here.at.next, align 4
  %far.at = getelementptr i32, ptr %here.at, i64 {_SHIFT}
  %far = load <8 x i32>, ptr %far.at, align 4
  %upper = and <8 x i32> %here, splat (i32 {-1 << 31})
  %lower = and <8 x i32> %following, splat (i32 {(1 << 31) - 1})
  %mixed = or <8 x i32> %upper, %lower
  %odd = and <8 x i32> %following, splat (i32 1)
  %is.odd = sub <8 x i32> zeroinitializer, %odd
  %twist = and <8 x i32> %is.odd, splat (i32 {0x9908B0DF - (1 << 32)})
  %half = lshr <8 x i32> %mixed, splat (i32 1)
  %near = xor <8 x i32> %far, %half
  %new.key = xor <8 x i32> %near, %twist
  %there.at = getelementptr i32, ptr %here.at, i64 {KEY}
  store <8 x i32> %new.key, ptr %there.at, align 4
  next %i
keep:
  %new = getelementptr i32, ptr %keys, i64 {KEY}
  call void @llvm.memcpy.p0.p0.i64(ptr %key, ptr %new, i64 {4 * KEY}, i1 0)
temper:
  %begin = phi i64 [ %from, %more ], [ 0, %keep ]
  for %j = 0 ult {KEY} by 8:
  %y.at = getelementptr i32, ptr %key, i64 %j
  %y.0 = load <8 x i32>, ptr %y.at, align 4
  %s.1 = lshr <8 x i32> %y.0, splat (i32 11)
  %y.1 = xor <8 x i32> %y.0, %s.1
  %s.2 = shl <8 x i32> %y.1, splat (i32 7)
  %m.2 = and <8 x i32> %s.2, splat (i32 {0x9D2C5680 - (1 << 32)})
  %y.2 = xor <8 x i32> %y.1, %m.2
  %s.3 = shl <8 x i32> %y.2, splat (i32 15)
  %m.3 = and <8 x i32> %s.3, splat (i32 {0xEFC60000 - (1 << 32)})
  %y.3 = xor <8 x i32> %y.2, %m.3
  %s.4 = lshr <8 x i32> %y.3, splat (i32 18)
  %y.4 = xor <8 x i32> %y.3, %s.4
  %tempered.at = getelementptr i32, ptr %tempered, i64 %j
  store <8 x i32> %y.4, ptr %tempered.at, align 4
  next %j
give:
  %there = sub i64 {KEY}, %begin
  %few = icmp ult i64 %left, %there
  %take = select i1 %few, i64 %left, i64 %there
  %source = getelementptr i32, ptr %tempered, i64 %begin
  %target = getelementptr i32, ptr %out, i64 %given
  %bytes = mul i64 %take, 4
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %bytes, i1 0)
  %given.next = add i64 %given, %take
  %to = add i64 %begin, %take
  br label %next
finished:
  %from.word = trunc i64 %from to i32
  store i32 %from.word, ptr %position.at
  ret void
}}
"""
