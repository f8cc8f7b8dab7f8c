# SPDX-License-Identifier: Apache-2.0
"""The Chinese texts of the operation reference, by their English ones."""

HEADER = """# 操作参考

程序里可以写的每个操作，按操作表的次序排列。
本页由 `tools/gen_op_reference.py` 从操作表生成，并由测试比对；还没有译文的说明保留英文。

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
}
