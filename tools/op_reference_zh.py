# SPDX-License-Identifier: Apache-2.0
"""The Chinese texts of the operation reference, by their English ones."""

import re

import op_meanings_zh

HEADER = """# 操作参考

程序里可以写的每个操作，按操作表的次序排列。
本页由 `tools/gen_op_reference.py` 从操作表生成，并由测试比对。

**位置**：K 是 kernel，O 是设备编排，H 是主机编排。
**结果**：*新值*是新产生的值；*视图*与第一个操作数共用单元；*就地*是被更新的那个操作数；*无*是没有结果，或者是标量。
**作用**：每个参数一个字母，`r` 读，`w` 写，`x` 读写，`a` 原子累加，大写表示在对端做同样的事，
`n` 增加对端的信号，`s` 等待信号，`-` 什么也不做。O-307 之类是操作各章的规则编号。

**例子**是 kernel 里的语句（不属于 kernel 的操作则是设备编排里的语句），全部由测试运行。
其中的操作数：{operands}；
`tx` 是从 `x` 加载来的 tile，其余类推；`n` 是运行时的 INT32 标量；`o` 是与 `x` 同样的输出。
加引号的词是本页末尾的一个程序，路径是仓库里的程序。
"""

TEXTS = {
    # Headings and words of the table.
    "Operation": "操作",
    "Meaning": "含义",
    "Shapes": "形状",
    "Types": "类型",
    "Numerics": "数值",
    "Places": "位置",
    "Result": "结果",
    "Effects": "作用",
    "Example": "例子",
    "value": "新值",
    "view": "视图",
    "in place": "就地",
    "none": "无",
    "Programs": "程序",
    "Operations of either form": "张量与 tile 通用的操作",
    "Tensor forms": "张量形式",
    "Tile forms": "Tile 形式",
    "System": "系统",
    "Arrays": "数组",
    "Prefetching": "预取",
    "Distributed: short spellings": "分布式：短写法",
    "Distributed: queries and signals": "分布式：查询与信号",
    "Distributed: windows, transfers, collectives": "分布式：window、传输、集合通信",
    "Distributed: tile transfers": "分布式：tile 传输",
    # Shapes.
    "2 to 4 operands merged": "2 到 4 个操作数归并",
    "2-D tile of at most `slot_size` bytes": "至多 `slot_size` 字节的二维 tile",
    "2-D; the halves joined": "二维；两半合起来",
    "2-D; the lane's half of the axis": "二维；该轴上属于本 lane 的一半",
    "NumPy broadcast of the operands; valid region of the first": "操作数按 NumPy 广播；有效区域同第一个",
    "NumPy broadcast of the operands; valid region of the first; tiles of one shape": (
        "操作数按 NumPy 广播；有效区域同第一个；tile 形状相同"
    ),
    "`[..., M, N]` to `[..., 1, N]`; valid cells only": "`[..., M, N]` 到 `[..., 1, N]`；只算有效单元",
    "`[..., N]` to `[..., 1]`; valid cells only": "`[..., N]` 到 `[..., 1]`；只算有效单元",
    "`[1, K] . [K, N]`, in place": "`[1, K] . [K, N]`，就地",
    "`[M, K] . [K, N]`, scales `[M, K/32]`, `[K/32, N]`": "`[M, K] . [K, N]`，缩放 `[M, K/32]`、`[K/32, N]`",
    "`[M, K] . [K, N]`, scales `[M, K/32]`, `[K/32, N]`, bias `[1, N]`": (
        "`[M, K] . [K, N]`，缩放 `[M, K/32]`、`[K/32, N]`，偏置 `[1, N]`"
    ),
    "`[M, K] . [K, N]`; tensors also vectors and batches (O-1801)": "`[M, K] . [K, N]`；张量还可以是向量和批（O-1801）",
    "`[M, N]` to `[M, N/2]` or `[M, N/4]`": "`[M, N]` 到 `[M, N/2]` 或 `[M, N/4]`",
    "`[M, out_cols]` and counts `[1, M]`": "`[M, out_cols]` 与计数 `[1, M]`",
    "`a [..., M, N]` with `v [..., 1, N]`": "`a [..., M, N]` 与 `v [..., 1, N]`",
    "`a [..., M, N]` with `v [..., M, 1]`": "`a [..., M, N]` 与 `v [..., M, 1]`",
    "`acc [M, N]`, in place": "`acc [M, N]`，就地",
    "`n` blocks with counts": "`n` 块及其计数",
    "`n` rows to `n` rows": "`n` 行到 `n` 行",
    "`n` rows to one": "`n` 行到一行",
    "one row to `n` rows": "一行到 `n` 行",
    "`offset [R, C]` to `[R, 32 C / size]`": "`offset [R, C]` 到 `[R, 32 C / size]`",
    "`shape` at `offsets` of a peer's slice": "对端 slice 中 `offsets` 处的 `shape`",
    "`shape`, constant; exact bounds": "`shape`，固定；界限精确",
    "`shape`, each at least the operand's": "`shape`，各维不小于操作数",
    "`shape`, of at most the buffer's elements": "`shape`，元素不多于 buffer",
    "`shape`, or the annotation of the name": "`shape`，或名字的标注",
    "`shape`; valid region by O-211": "`shape`；有效区域见 O-211",
    "`shapes` constant; valid region cut by the source (O-211)": "`shapes` 固定；有效区域受源限制（O-211）",
    "`stride N` columns of the target": "target 的 `stride N` 列",
    "`v [..., M, 1]`, on tiles also a lane block (O-1602)": "`v [..., M, 1]`，对 tile 也可以是 lane 块（O-1602）",
    "a context": "一个上下文",
    "a handle": "一个句柄",
    "a popped tile": "取出的 tile",
    "a scalar": "一个标量",
    "a scalar; one index per axis": "一个标量；每轴一个下标",
    "a session": "一个会话",
    "a task id": "一个任务号",
    "acc's batch axes are the broadcast ones": "acc 的批轴就是广播后的批轴",
    "an event; `src [1, ..., N]`": "一个事件；`src [1, ..., N]`",
    "as given, fully valid": "如给定，全部有效",
    "as given; constants in a kernel's on-chip form": "如给定；kernel 里的片上形式须是常数",
    "broadcast; valid region of `lhs`": "广播；有效区域同 `lhs`",
    "bytes and slots": "字节数与槽位数",
    "constant": "固定",
    "constant extent": "大小固定",
    "constant, positive": "固定，为正",
    "elements or bytes of one rank's slice": "一个 rank 的 slice 的元素或字节",
    "equal on every rank": "各 rank 相同",
    "event 0 to 13": "事件 0 到 13",
    "every dimension but the last is 1": "除末维外各维为 1",
    "global tensor, in place": "全局张量，就地",
    "index's shape; tiles address the flat source": "index 的形状；tile 按展平的源寻址",
    "last axis scaled by the sizes, or `shape`": "末轴按字节大小折算，或 `shape`",
    "last dimension a multiple of 32; 8-byte records": "末维是 32 的倍数；记录 8 字节",
    "last two axes swapped": "最后两轴互换",
    "no result": "没有结果",
    "one cell of a signal window": "信号 window 的一个单元",
    "one index per axis": "每轴一个下标",
    "one shape; tiles broadcast": "形状相同；tile 可广播",
    "one window of global memory, in place": "全局内存的一个矩形，就地",
    "operand's shape, fully valid": "操作数的形状，全部有效",
    "packed mask": "压缩的掩码",
    "rank 2, constant": "二维，固定",
    "rank 2; 0 to physical extents": "二维；0 到物理大小",
    "rank 2; columns add": "二维；列数相加",
    "rank 2; slope of the same shape": "二维；slope 形状相同",
    "rank 3; at most one broadcast axis": "三维；至多一个广播轴",
    "row: `[R, cols]`; elem: index's shape": "按行：`[R, cols]`；按元素：index 的形状",
    "rows of a 2-D or 4-D input": "二维或四维输入的行",
    "runs merged in fours": "每四段归并",
    "runs merged in fours, or 2 to 4 operands": "每四段归并，或 2 到 4 个操作数",
    "same element count, or ND and DN swapped": "元素个数相同，或 ND 与 DN 互换",
    "same element count, row-major order": "元素个数相同，行主序",
    "scalars": "标量",
    "shape and valid region of the array operand": "形状和有效区域同张量或 tile 操作数",
    "shape and valid region of the operand": "形状和有效区域同操作数",
    "signal window of a cell per rank": "每个 rank 一个单元的信号 window",
    "target's shape and valid region; `col_vec [..., 1, N]`": "形状和有效区域同 target；`col_vec [..., 1, N]`",
    "target's shape and valid region; `row_vec [..., M, 1]`": "形状和有效区域同 target；`row_vec [..., M, 1]`",
    "target's shape, fully valid": "target 的形状，全部有效",
    "target's shape; valid region by O-212": "target 的形状；有效区域见 O-212",
    "tensors: broadcast, 0/1; tiles: packed mask `[M, roundup(ceil(N/8), 32)]`": (
        "张量：广播，0/1；tile：压缩的掩码 `[M, roundup(ceil(N/8), 32)]`"
    ),
    "tensors: rows by `index`; tiles: flat, in place": "张量：按 `index` 取行；tile：展平，就地",
    "the array": "该数组",
    "the source's valid region at `offsets`": "源的有效区域，放在 `offsets` 处",
    "the two axes swapped": "两轴互换",
    "tiles broadcast; tensors of one shape": "tile 可广播；张量形状相同",
    "tiles of rank 2 or more; batches broadcast": "二维及以上的 tile；批轴可广播",
    "valid region of the first; cells valid in one operand only are copied": (
        "有效区域同第一个；只在一个操作数中有效的单元照抄"
    ),
    "whole tensors, or `shape` at the offsets": "整个张量，或各偏移处的 `shape`",
    "workspace of 16 or more cells": "16 个单元以上的工作区",
    "workspace of 256 or more cells": "256 个单元以上的工作区",
    "writes the valid region at `offsets`": "在 `offsets` 处写入有效区域",
    # Types.
    "8- to 32-bit, BF16; a5 also FP8, HF8": "8 到 32 位、BF16；a5 还有 FP8、HF8",
    "8- to 32-bit, BF16; offsets UINT32": "8 到 32 位、BF16；偏移 UINT32",
    "FP16, BF16, FP32, INT8; indices INT32": "FP16、BF16、FP32、INT8；下标 INT32",
    "FP16, FP32, INT16, INT32; index INT32": "FP16、FP32、INT16、INT32；下标 INT32",
    "FP16, FP32, INT16, INT32; index INT32, or INT16 for 16-bit": (
        "FP16、FP32、INT16、INT32；下标 INT32，16 位时 INT16"
    ),
    "FP16, FP32, INT16, INT32; result INT32": "FP16、FP32、INT16、INT32；结果 INT32",
    "FP16, FP32, INT16, INT32; results INT32": "FP16、FP32、INT16、INT32；结果 INT32",
    "FP16, FP32, INT32; a5 also INT16, UINT16, UINT32": "FP16、FP32、INT32；a5 还有 INT16、UINT16、UINT32",
    "FP16, FP32; index UINT32, INT32": "FP16、FP32；下标 UINT32、INT32",
    "FP8E4M3FN, scales FP8E8M0": "FP8E4M3FN，缩放 FP8E8M0",
    "INT16, UINT16, INT32, UINT32, FP16, FP32; a5 also INT8, UINT8": (
        "INT16、UINT16、INT32、UINT32、FP16、FP32；a5 还有 INT8、UINT8"
    ),
    "INT16, UINT16, INT32, UINT32, FP16, FP32; a5 also INT8, UINT8, BF16": (
        "INT16、UINT16、INT32、UINT32、FP16、FP32；a5 还有 INT8、UINT8、BF16"
    ),
    "INT8, INT16, INT32, FP16, BF16, FP32; index INT32 for 4 bytes, else INT16": (
        "INT8、INT16、INT32、FP16、BF16、FP32；4 字节的下标用 INT32，其余用 INT16"
    ),
    "INT8, INT16, INT32, FP16, FP32, equal": "INT8、INT16、INT32、FP16、FP32，相同",
    "integers, BOOL, TASK_ID": "整数、BOOL、TASK_ID",
    "any": "任意",
    "equal": "相同",
    "8- to 32-bit integers, FP16, BF16, FP32; masks UINT8": "8 到 32 位整数、FP16、BF16、FP32；掩码 UINT8",
    "8- to 64-bit integers, FP16, BF16, FP32": "8 到 64 位整数、FP16、BF16、FP32",
    "INT8-INT64, UINT8-UINT64, FP16, BF16, FP32; mixed pairs promote (O-301)": (
        "INT8-INT64、UINT8-UINT64、FP16、BF16、FP32；类型不同时提升（O-301）"
    ),
    "FP16, BF16, FP32; integer tensors give FP32": "FP16、BF16、FP32；整数张量得 FP32",
    "FP16, BF16, FP32; tiles also INT16, INT32": "FP16、BF16、FP32；tile 还有 INT16、INT32",
    "FP16, BF16, FP32 or INT8, equal": "FP16、BF16、FP32 或 INT8，相同",
    "FP16, BF16, FP32 or INT8, equal; acc FP32 or INT32": "FP16、BF16、FP32 或 INT8，相同；acc 为 FP32 或 INT32",
    "FP16, BF16, FP32 or INT8, equal; bias FP32 or INT32": "FP16、BF16、FP32 或 INT8，相同；偏置为 FP32 或 INT32",
    "FP16, BF16, FP32, INT32; INT32 signal": "FP16、BF16、FP32、INT32；信号 INT32",
    "INT32 signal": "信号 INT32",
    "INT8-INT32, UINT8-UINT32; a5 also 64-bit": "INT8-INT32、UINT8-UINT32；a5 还有 64 位",
    "any; FP8, FP4 only zero": "任意；FP8、FP4 只能是零",
    "any; INT32 counts and signal": "任意；计数和信号 INT32",
    "any; INT32 signal": "任意；信号 INT32",
    "any; MX layouts FP8E8M0, UINT8": "任意；MX 布局限 FP8E8M0、UINT8",
    "any; `output_dtype` of the same width": "任意；`output_dtype` 宽度相同",
    "any; integer index": "任意；下标为整数",
    "equal; Acc also narrows": "相同；Acc 还可以缩窄",
    "equal; products also narrow": "相同；乘积还可以缩窄",
    "integers or floats, promoted": "整数或浮点，提升",
    "result INDEX": "结果 INDEX",
    "the array's type": "数组的类型",
    "the element type": "元素的类型",
    "the pairs of O-1106": "O-1106 列出的各对",
    # Numerics.
    "1e-6 absolute for every finite argument": "对任何有限的自变量，绝对误差 1e-6",
    "4 ulp in FP32; subnormals kept (O-313)": "FP32 里 4 ulp；保留次正规数（O-313）",
    "4 ulp": "4 ulp",
    "4 ulp; `log 0 = -inf`": "4 ulp；`log 0 = -inf`",
    "4 ulp; integers toward zero": "4 ulp；整数向零取整",
    "4 ulp; integers toward zero (O-306)": "4 ulp；整数向零取整（O-306）",
    "4 ulp; negative gives NaN": "4 ulp；负数得 NaN",
    "Acc rounds to nearest even (O-703)": "Acc 向最近的偶数舍入（O-703）",
    "C fmod, exact": "C fmod，精确",
    "FP32 for floats, INT32 for INT8; k ascending, one fused multiply-add per term (O-307)": (
        "浮点用 FP32，INT8 用 INT32；k 从小到大，每项一次融合乘加（O-307）"
    ),
    "FP32 for floats, INT32 for INT8; k ascending, one fused multiply-add per term (O-307), from the bias": (
        "浮点用 FP32，INT8 用 INT32；k 从小到大，每项一次融合乘加（O-307），从偏置开始"
    ),
    "FP32, from the bias": "FP32，从偏置开始",
    "FP32, in place": "FP32，就地",
    "FP32, scaled per 32 terms (O-1810)": "FP32，每 32 项缩放一次（O-1810）",
    "Philox-4x32, 7 or 10 rounds (O-507)": "Philox-4x32，7 轮或 10 轮（O-507）",
    "`start + k`, wrapping": "`start + k`，溢出回绕",
    "a view": "视图",
    "by algorithm and mode, reproducible (03 C-12)": "由算法和模式决定，可复现（03 C-12）",
    "by algorithm, reproducible (03 C-12)": "由算法决定，可复现（03 C-12）",
    "contents unspecified": "内容未定",
    "contents unspecified, or `init_value`": "内容未定，或为 `init_value`",
    "copies bits": "照抄比特",
    "copies bits; `atomic=Add` adds per cell (03 O-37)": "照抄比特；`atomic=Add` 逐单元累加（03 O-37）",
    "copies bits; out of range gives 0 (O-1905)": "照抄比特；越界得 0（O-1905）",
    "counts of the width or more give 0 or the sign": "移位数达到宽度时得 0 或符号",
    "counts of the width or more give 0 or the sign (O-1203)": "移位数达到宽度时得 0 或符号（O-1203）",
    "descending, ties by index (O-2001)": "从大到小，相等时按下标（O-2001）",
    "difference rounded, then exp (4 ulp)": "差先舍入，再取 exp（4 ulp）",
    "either operand for NaN": "遇 NaN 时取任一操作数",
    "either operand for NaN (O-308)": "遇 NaN 时取任一操作数（O-308）",
    "every addition rounds to the type; a tree with `tmp_tile` (O-1505)": (
        "每次相加都舍入到该类型；给 `tmp_tile` 时按树形（O-1505）"
    ),
    "exact": "精确",
    "exact; the least integer wraps to itself": "精确；最小的整数回绕到自己",
    "floats to nearest even; to integers by `mode` (O-1104)": "浮点向最近的偶数舍入；转整数按 `mode`（O-1104）",
    "floor remainder": "向下取整的余数",
    "floor remainder, sign of the divisor": "向下取整的余数，符号随除数",
    "integers wrap; 16-bit floats in FP32, rounded once (O-303, O-305)": (
        "整数回绕；16 位浮点在 FP32 里算，舍入一次（O-303、O-305）"
    ),
    "last write wins": "后写的为准",
    "lowest index wins": "取最小的下标",
    "no data moves": "不搬数据",
    "no effect on values": "不影响值",
    "one rounding per step, left to right": "从左到右，每步舍入一次",
    "pad value of O-1701": "O-1701 的填充值",
    "products to nearest even": "乘积向最近的偶数舍入",
    "rounded once": "舍入一次",
    "rows ascending in FP32, rounded once": "在 FP32 里按行从小到大，舍入一次",
    "same bits": "比特相同",
    "same bytes": "字节相同",
    "set or add; overflow is an error": "置值或累加；溢出是错误",
    "sixteen partial products in FP32, rounded once": "在 FP32 里分十六个部分积，舍入一次",
    "sixteen partial sums in FP32, rounded once (O-307)": "在 FP32 里分十六个部分和，舍入一次（O-307）",
    "stable, descending": "稳定，从大到小",
    "the constant converted to the type (O-304)": "常数转成该类型（O-304）",
    "the scalar converted": "标量转成该类型",
    "view or address": "视图或地址",
    "with NaN only `ne` holds": "遇 NaN 只有 `ne` 成立",
    "zeros": "零",
}

CITED = re.compile(r"(?P<meaning>.*?)(?: \((?P<rules>(?:chapter|O-|03 )[^()]*)\))?\.")


def say(text: str) -> str:
    """Return the Chinese text for an English one.

    Raises
    ------
    KeyError
        If a text with words has none here.
    """
    if text in TEXTS:
        return TEXTS[text]
    if re.fullmatch(r"[A-Z0-9]+(, [A-Z0-9]+)+", text):  # types
        return text.replace(", ", "、")
    cited = CITED.fullmatch(text)
    if cited is None or cited["meaning"] not in op_meanings_zh.MEANINGS:
        if re.search(r"[a-z]{3}", re.sub(r"`[^`]*`", "", text)):
            raise KeyError(f"no Chinese text for {text!r}: add it to tools/op_reference_zh.py or op_meanings_zh.py")
        return text
    rules = (cited["rules"] or "").replace(" - ", " 至 ").replace(", ", "、")
    rules = re.sub(r"chapter (\d+) section (\d+)", r"第 \1 章第 \2 节", rules)
    return op_meanings_zh.MEANINGS[cited["meaning"]] + (f"（{rules}）" if rules else "")
