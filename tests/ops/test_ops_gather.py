# SPDX-License-Identifier: Apache-2.0
"""Gathers, scatters, sorts, creation and random words through the language against NumPy (02 sections 5, 19, 20)."""

import numpy as np
import pytest
import torch
from opkit import FLOATS, NUMPY, operands, run, same

GATHER = ("FP16", "FP32", "INT16", "INT32")
MASKS = {
    "P0101": (0, 2),
    "P1010": (1, 2),
    "P0001": (0, 4),
    "P0010": (1, 4),
    "P0100": (2, 4),
    "P1000": (3, 4),
    "P1111": (0, 1),
}


@pytest.mark.parametrize("dtype", GATHER)
@pytest.mark.parametrize("dim", [-1, 0, 1, -3])
def test_gather_by_index(dtype, dim):  # O-1902, B-18, against PyTorch
    x = operands(dtype, (4, 6, 32), 91)
    random = np.random.default_rng(92)
    shape = [3, 5, 16]
    shape[dim] = 9
    index = random.integers(0, x.shape[dim], shape).astype(np.int32)
    outs = {f"o{i}": np.zeros(shape, x.dtype) for i in range(4)}
    run(
        f"""
        o0[:, :, :] = pl.gather(x, {dim}, index)
        o1[:, :, :] = pl.gather(x, dim={dim}, index=index)
        o2[:, :, :] = pl.tensor.gather(input=x, dim={dim}, index=index)
        o3[:, :, :] = pl.gather(pl.mul(x, 1), index=index, dim={dim})
        """,
        x=x, index=index, **outs,
    )  # fmt: skip
    bits = torch.from_numpy(x.view(np.int16 if x.dtype.itemsize == 2 else np.int32).copy())
    want = torch.gather(bits, dim, torch.from_numpy(index.astype(np.int64))).numpy().view(x.dtype)
    for key, got in outs.items():
        same(got, want, f"gather:{key} {dtype}")


@pytest.mark.parametrize("dtype", ["FP16", "INT16"])
def test_sixteen_bit_indices(dtype):  # O-1902
    x = operands(dtype, (4, 32), 93)
    index = np.random.default_rng(94).integers(0, 32, (4, 20)).astype(np.int16)
    o = np.zeros((4, 20), x.dtype)
    run("o[:, :] = pl.gather(x, -1, index)", x=x, index=index, o=o)
    same(o, np.take_along_axis(x, index.astype(np.int64), 1), f"gather:int16 {dtype}")


@pytest.mark.parametrize("dtype", GATHER)
def test_flat_index_of_tiles(dtype):  # O-1903, O-1905, B-19
    x = operands(dtype, (4, 32), 95)
    index = np.random.default_rng(96).integers(0, 128, (3, 40)).astype(np.int32)
    index[1, 7] = 5000
    index[2, 3] = -1
    o0, o1 = (np.zeros((3, 40), x.dtype) for _ in range(2))
    run(
        """
        t = pl.load(x, [0, 0], [4, 32])
        i = pl.load(index, [0, 0], [3, 40])
        tmp = pl.create_tile([3, 40], dtype=pl.INT32)
        o0 = pl.store(pl.tile.gather(t, i, tmp), [0, 0], o0)
        o1 = pl.store(pl.tile.gather(src=pl.set_validshape(t, 4, 30), indices=i, tmp=tmp), [0, 0], o1)
        """,
        x=x, index=index, o0=o0, o1=o1,
    )  # fmt: skip
    good = (index >= 0) & (index < 128)
    want = np.where(good, x.reshape(-1)[np.clip(index, 0, 127)], np.zeros((), x.dtype))
    same(o0, want, f"tile.gather:{dtype}")
    same(o1, want, f"tile.gather:{dtype}")


@pytest.mark.parametrize("pattern", MASKS)
@pytest.mark.parametrize("dtype", ["FP32", "FP16", "INT32", "INT16", "BF16", "INT8"])
def test_gather_and_scatter_by_mask(dtype, pattern):  # O-1904, O-1921, O-1922, B-21
    x = operands(dtype, (5, 64), 97)
    first, stride = MASKS[pattern]
    chosen = np.ascontiguousarray(x[:, first::stride])
    n = chosen.shape[1]
    value = list(MASKS).index(pattern) + 1
    outs = {f"o{i}": np.zeros_like(chosen) for i in range(4)}
    outs |= {f"ow{i}": np.zeros_like(x) for i in range(3)}
    base = operands(dtype, (5, 64), 98)
    run(
        f"""
        o0[:, :] = pl.gather(x, mask_pattern=pl.tile.MaskPattern.{pattern})
        o1[:, :] = pl.tensor.gather_mask(x, {value})
        t = pl.load(x, [0, 0], [5, 64])
        o2 = pl.store(pl.tile.gather_mask(t, mask_pattern=pl.tile.MaskPattern.{pattern}), [0, 0], o2)
        o3[:, :] = pl.tensor.gather(x, mask_pattern={value})
        ow0[:, :] = pl.scatter(c, mask_pattern=pl.tile.MaskPattern.{pattern}, dst=base)
        ow1[:, :] = pl.tensor.scatter_mask(c, base, {value})
        d = pl.load(base, [0, 0], [5, 64])
        d = pl.tile.scatter_mask(d, pl.load(c, [0, 0], [5, {n}]), mask_pattern=pl.tile.MaskPattern.{pattern})
        ow2 = pl.store(d, [0, 0], ow2)
        """,
        x=x, c=chosen, base=base, **outs,
    )  # fmt: skip
    want = base.copy()
    want[:, first::stride] = chosen
    for key, got in outs.items():
        same(got, want if key.startswith("ow") else chosen, f"mask gather/scatter:{key} {dtype}")


@pytest.mark.parametrize("dtype", GATHER)
def test_gather_by_comparison(dtype):  # O-1906
    x = operands(dtype, (4, 48), 99, nan=False)
    functions = {
        "eq": np.equal,
        "ne": np.not_equal,
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
    }
    x[:, ::5] = 3
    outs, body = {}, ["t = pl.load(x, [0, 0], [4, 48])", "tmp = pl.create_tile([4, 64], dtype=pl.UINT8)"]
    for i, mode in enumerate(functions):
        outs |= {f"oa{i}": np.zeros((4, 20), np.int32), f"ob{i}": np.zeros((1, 4), np.int32)}
        outs |= {f"oc{i}": np.zeros((4, 20), np.int32), f"od{i}": np.zeros((1, 4), np.uint32)}
        body += [
            f"f{i}, n{i} = pl.gather(x, kvalue=3, cmp_mode='{mode}', out_cols=20, offset=7)",
            f"oa{i}[:, :] = f{i}",
            f"ob{i}[:, :] = n{i}",
            f"g{i}, m{i} = pl.tile.gather_compare(t, k, tmp, cmp_mode={i}, offset=7, out_cols=20, count_dtype=pl.UINT32)",
            f"oc{i} = pl.store(g{i}, [0, 0], oc{i})",
            f"od{i} = pl.store(m{i}, [0, 0], od{i})",
        ]
    run("\n".join(body), "a2a3sim", {"k": (dtype, 3)}, x=x, **outs)
    for i, f in enumerate(functions.values()):
        hits = f(x.astype(np.float64), 3.0)
        np.testing.assert_array_equal(outs[f"ob{i}"][0], hits.sum(1))
        np.testing.assert_array_equal(outs[f"od{i}"][0], hits.sum(1))
        for row in range(4):
            where = np.flatnonzero(hits[row])[:20] + 7
            np.testing.assert_array_equal(outs[f"oa{i}"][row, : len(where)], where)
            np.testing.assert_array_equal(outs[f"oc{i}"][row, : len(where)], where)


@pytest.mark.parametrize("dtype", ["FP32", "INT16", "UINT8", "BF16"])
def test_gather_of_blocks(dtype):  # O-1907
    size = np.dtype(NUMPY[dtype]).itemsize
    x = operands(dtype, (8, 256 // size), 100)
    offset = (np.random.default_rng(101).integers(0, 64, (4, 8)) * 32).astype(np.uint32)
    o0, o1 = np.zeros((4, 256 // size), x.dtype), np.zeros((4, 64), np.uint32)
    run(
        f"""
        t = pl.load(x, [0, 0], [8, {256 // size}])
        f = pl.load(offset, [0, 0], [4, 8])
        o0 = pl.store(pl.gatherb(t, f), [0, 0], o0)
        o1 = pl.store(pl.tile.gatherb(src=t, offset=f, output_dtype=pl.UINT32), [0, 0], o1)
        """,
        x=x, offset=offset, o0=o0, o1=o1,
    )  # fmt: skip
    blocks = x.reshape(-1).view(np.uint8).reshape(-1, 32)
    want = blocks[offset // 32].reshape(4, -1)
    np.testing.assert_array_equal(o0.view(np.uint8), want)
    np.testing.assert_array_equal(o1.view(np.uint8), want)


@pytest.mark.parametrize("dtype", ["FP32", "FP16", "BF16", "INT8"])
def test_rows_and_pages(dtype):  # O-1910, O-1911
    x = operands(dtype, (64, 32), 102)
    indices = np.array([5, 17, 3, 40, 22], np.int32)
    table = np.array([3, 0, 2, 1, 7, 5], np.int32)
    outs = {
        "o0": np.zeros((8, 32), x.dtype),
        "o1": np.zeros((32, 8), x.dtype),
        "o2": np.zeros((8, 16), x.dtype),
        "o3": np.zeros((8, 32), x.dtype),
    }
    run(
        f"""
        acc = pl.create_tensor([8, 32], dtype=pl.{dtype})
        for i in pl.range(5):
            r = pl.read(indices, [i])
            acc = pl.gather_row(acc, x, [i, 0], [r, 0], [1, 32])
        pl.gather_row(acc, x, dst_offset=[5, 4], src_offset=[9, 8], shapes=[3, 24], valid_shape=[n, 20])
        o0[:, :] = acc
        flipped = pl.create_tile([32, 8], dtype=pl.{dtype})
        flipped = pl.tile.gather_row(flipped, x, [0, 0], [16, 0], [8, 32], transpose=True)
        o1 = pl.store(flipped, [0, 0], o1)
        page = pl.paged_gather(x, indices, table, 8, 16, 8, space=pl.Mem.Vec, col_off=4)
        o2[0:5, :] = page[0:5, :]
        late = pl.create_l1([8, 32], pl.{dtype})
        late = pl.tensor.gather_row(late, x, [0, 0], [8, 0], [8, 32])
        o3[:, :] = late
        """,
        "a2a3sim", {"n": ("INT32", 2)}, x=x, indices=indices, table=table, **outs,
    )  # fmt: skip
    want = np.zeros((8, 32), x.dtype)
    want[:5] = x[indices]
    want[5:7, 4:24] = x[9:11, 8:28]
    same(outs["o0"], want, f"gather_row:{dtype}")
    same(outs["o1"], np.ascontiguousarray(x[16:24].T), f"gather_row:transposed {dtype}")
    physical = table[indices // 8] * 8 + indices % 8
    same(outs["o2"][:5], x[physical, 4:20], f"paged_gather:{dtype}")
    same(outs["o3"], x[8:16], f"gather_row:L1 {dtype}")


@pytest.mark.parametrize("oob", ["clamp", "wrap", "zero", "undefined", 1, 2, 3])
@pytest.mark.parametrize("dtype", ["FP32", "INT16", "BF16", "UINT8"])
def test_memory_gathers(dtype, oob):  # O-1912, O-1913, O-1914
    platform = "a2a3sim"
    x = operands(dtype, (15, 32), 103)
    rows = np.array([[3, 14, 0, 7, 200, -1, 9, 2]], np.int32)
    cells = np.random.default_rng(104).integers(0, 480, (4, 32)).astype(np.int32)
    cells[1, 3], cells[2, 2] = 5000, -7
    if oob == "undefined":
        rows[rows > 14], rows[rows < 0], cells[cells > 479], cells[cells < 0] = 1, 1, 1, 1
    outs = {"o0": np.zeros((8, 32), x.dtype), "o1": np.zeros((4, 32), x.dtype), "o2": np.full((8, 32), 7, x.dtype)}
    mode = repr(oob)
    run(
        f"""
        r = pl.load(rows, [0, 0], [1, 8])
        c = pl.load(cells, [0, 0], [4, 32])
        o0 = pl.store(pl.mgather(x, r, gather_oob={mode}), [0, 0], o0)
        o1 = pl.store(pl.tile.mgather(mem=x, idx=c, coalesce="elem", gather_oob={mode}), [0, 0], o1)
        o2 = pl.store(pl.mgather(x, pl.set_validshape(r, 1, 3), 0, gather_oob={mode}), [0, 0], o2)
        """,
        platform, x=x, rows=rows, cells=cells, **outs,
    )  # fmt: skip

    def pick(index, bound):
        u = index.astype(np.uint32).astype(np.int64)
        good = u < bound
        at = np.where(good, u, bound - 1) if oob in ("clamp", 1) else u % bound
        return at, good | (oob not in ("zero", 3))

    at, keep = pick(rows[0], 15)
    want = np.where(keep[:, None], x[at], np.zeros((), x.dtype))
    same(outs["o0"], want, f"mgather:row {dtype}")
    part = np.full((8, 32), 7, x.dtype)
    part[:3] = want[:3]
    same(outs["o2"], part, f"mgather:row {dtype}")
    at, keep = pick(cells, 480)
    same(outs["o1"], np.where(keep, x.reshape(-1)[at], np.zeros((), x.dtype)), f"mgather:elem {dtype}")


def test_memory_gathers_on_a5_and_to_mat():  # O-1912 column form, O-1913
    x = operands("FP16", (64, 32), 105)
    rows = np.random.default_rng(106).integers(0, 64, (1, 16)).astype(np.int32)
    column, cells = (
        np.ascontiguousarray(rows.T),
        np.random.default_rng(107).integers(0, 2048, (16, 32)).astype(np.int32),
    )
    scratch = np.zeros((16, 32), np.float16)
    eye = np.eye(32, dtype=np.float16)
    outs = {
        "o0": np.zeros((16, 32), np.float16),
        "o1": np.zeros((16, 32), np.float32),
        "o2": np.zeros((16, 32), np.float32),
    }
    run(
        """
        o0 = pl.store(pl.mgather(x, pl.load(column, [0, 0], [16, 1])), [0, 0], o0)
        e = pl.load(eye, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
        m = pl.mgather(x, rows, target_memory=pl.MemorySpace.Mat)
        o1 = pl.store(pl.matmul(m, e), [0, 0], o1)
        n = pl.mgather(x, cells, "elem", target_memory=pl.MemorySpace.Mat, scratch=scratch)
        o2 = pl.store(pl.matmul(n, e), [0, 0], o2)
        """,
        "a5sim", x=np.nan_to_num(x, posinf=1, neginf=2), column=column, rows=rows, cells=cells, eye=eye, scratch=scratch, **outs,
    )  # fmt: skip
    x = np.nan_to_num(x, posinf=1, neginf=2)
    same(outs["o0"], x[rows[0]], "mgather:column")
    same(outs["o1"], x[rows[0]].astype(np.float32), "mgather:Mat", signs=False)
    same(outs["o2"], x.reshape(-1)[cells].astype(np.float32), "mgather:Mat elem", signs=False)


# ---------------------------------------------------------------- scatter


@pytest.mark.parametrize("dtype", ["FP32", "FP16", "BF16", "INT32", "INT16", "INT8"])
def test_scatter_by_index(dtype):  # O-1920, O-1922: last write wins
    wide = np.dtype(NUMPY[dtype]).itemsize == 4
    x, src = operands(dtype, (6, 40), 108), operands(dtype, (4, 25), 109)
    index = np.random.default_rng(110).integers(0, 40, (4, 25)).astype(np.int32 if wide else np.int16)
    flat = np.random.default_rng(111).integers(0, 240, (4, 25)).astype(index.dtype)
    outs = {f"o{i}": np.zeros_like(x) for i in range(4)}
    run(
        """
        o0[:, :] = pl.scatter(x, 1, index, src)
        o1[:, :] = pl.tensor.scatter(input=x, dim=-1, index=index, src=src)
        t = pl.load(x, [0, 0], [6, 40])
        t = pl.tile.scatter(t, pl.load(src, [0, 0], [4, 25]), pl.load(flat, [0, 0], [4, 25]))
        o2 = pl.store(t, [0, 0], o2)
        o3[:, :] = x
        """,
        x=x, src=src, index=index, flat=flat, **outs,
    )  # fmt: skip
    want, tile = x.copy(), x.copy().reshape(-1)
    for b in range(4):
        for k in range(25):
            want[b, index[b, k]] = src[b, k]
            tile[flat[b, k]] = src[b, k]
    same(outs["o0"], want, f"scatter:{dtype}")
    same(outs["o1"], want, f"scatter:{dtype}")
    same(outs["o2"], tile.reshape(6, 40), f"tile.scatter:{dtype}")
    same(outs["o3"], x, "scatter:input unchanged")


@pytest.mark.parametrize("dtype", ["FP32", "BF16", "INT8", "INT32"])
def test_rows_are_replaced(dtype):  # O-1923
    x, src = operands(dtype, (16, 32), 112), operands(dtype, (6, 32), 113)
    index = np.array([[3, 15, 0], [7, 3, 9]], np.int32)
    x4, s4 = operands(dtype, (4, 4, 1, 32), 114), operands(dtype, (2, 3, 1, 32), 115)
    outs = {f"o{i}": np.zeros_like(x) for i in range(5)} | {"o5": np.zeros_like(x4), "o6": np.zeros_like(x)}
    run(
        """
        o0[:, :] = pl.scatter_update(x, -2, index, src)
        o1[:, :] = pl.scatter_update(x, index, src)
        o2[:, :] = pl.tensor.scatter_update(x, dim=-2, index=index, src=src)
        o3[:, :] = pl.scatter_update(input=x, index=index, src=src)
        t = pl.load(x, [0, 0], [16, 32])
        pl.tile.scatter_update(t, -2, pl.load(index, [0, 0], [2, 3]), pl.load(src, [0, 0], [6, 32]))
        o4 = pl.store(t, [0, 0], o4)
        o5[:, :, :, :] = pl.scatter_update(x4, -2, index, s4)
        o6[:, :] = x
        """,
        x=x, src=src, index=index, x4=x4, s4=s4, **outs,
    )  # fmt: skip
    want, want4 = x.copy(), x4.copy().reshape(16, 32)
    for k, at in enumerate(index.reshape(-1)):
        want[at], want4[at] = src[k], s4.reshape(6, 32)[k]
    for i in range(5):
        same(outs[f"o{i}"], want, f"scatter_update:{i} {dtype}")
    same(outs["o5"].reshape(16, 32), want4, f"scatter_update:4-D {dtype}")
    same(outs["o6"], x, "scatter_update:input unchanged")


@pytest.mark.parametrize("dtype", GATHER)
def test_memory_scatter(dtype):  # O-1924
    src = operands(dtype, (4, 16), 116)
    idx = np.random.default_rng(117).integers(0, 60, (4, 16)).astype(np.int32)
    idx[3], idx[:, 13:] = 10**6, 10**6  # outside the valid region
    o = operands(dtype, (4, 16), 118)
    want = o.copy().reshape(-1)
    for i in range(3):
        for j in range(13):
            want[idx[i, j]] = src[i, j]
    io = o.copy()
    run(
        """
        s = pl.set_validshape(pl.load(src, [0, 0], [4, 16]), 3, 13)
        io = pl.mscatter(s, pl.load(idx, [0, 0], [4, 16]), io)
        """,
        "a5sim", src=src, idx=idx, io=io,
    )  # fmt: skip
    same(io, want.reshape(4, 16), f"mscatter:{dtype}")


# ---------------------------------------------------------------- sorting


def records(values, index):
    """Pair records of 8 bytes (section 20)."""
    if values.dtype == np.float32:
        out = np.empty((*values.shape, 2), np.float32)
        out[..., 0], out[..., 1] = values, index.astype(np.uint32).view(np.float32)
        return out.reshape(values.shape[0], -1)
    out = np.zeros((*values.shape, 4), np.uint16)
    out[..., 0] = values.view(np.uint16)
    out[..., 2], out[..., 3] = index.astype(np.uint32) & 0xFFFF, index.astype(np.uint32) >> 16
    return out.reshape(values.shape[0], -1).view(np.float16)


def order(values, index):
    """Descending, ties by ascending unsigned index; both zeros are equal."""
    return np.lexsort((index.astype(np.uint32), -(values.astype(np.float64) + 0.0)), axis=-1)


def bits_of(x):
    return x.view(np.uint32 if x.dtype == np.float32 else np.uint16)


@pytest.mark.parametrize("dtype", ["FP32", "FP16"])
@pytest.mark.parametrize("kind", ["UINT32", "INT32"])
def test_sort_of_blocks(dtype, kind):  # O-2001
    x = operands(dtype, (5, 128), 119, nan=False)
    x[:, ::7] = 2
    index = np.random.default_rng(120).permutation(5 * 128).reshape(5, 128).astype(NUMPY[kind])
    if kind == "INT32":
        index[index > 500] *= -1
    width = 256 if dtype == "FP32" else 512
    outs = {f"o{i}": np.zeros((5, width), x.dtype) for i in range(4)}
    run(
        """
        o0[:, :] = pl.sort32(x, index)
        o1[:, :] = pl.tensor.sort32(src=x, idx=index)
        t = pl.load(x, [0, 0], [5, 128])
        i = pl.load(index, [0, 0], [5, 128])
        o2 = pl.store(pl.sort32(t, i), [0, 0], o2)
        o3 = pl.store(pl.tile.sort32(pl.set_validshape(t, 5, 100), i), [0, 0], o3)
        """,
        x=x, index=index, **outs,
    )  # fmt: skip
    blocks, places = x.reshape(20, 32), index.reshape(20, 32)
    at = order(blocks, places)
    want = records(np.take_along_axis(blocks, at, 1), np.take_along_axis(places, at, 1)).reshape(5, -1)
    for key, got in outs.items():
        np.testing.assert_array_equal(bits_of(got) & ~np.uint32(0), bits_of(want), err_msg=key)


@pytest.mark.parametrize("dtype", ["FP32", "FP16"])
@pytest.mark.parametrize("tile", [False, True])
def test_chain_of_merges(dtype, tile):  # O-2002, O-2005, B-20
    n = 2048
    x = np.round(np.random.default_rng(121).standard_normal((2, n)) * 20).astype(NUMPY[dtype]) + NUMPY[dtype](0)
    per = 2 if dtype == "FP32" else 4
    index = np.tile(np.arange(n, dtype=np.uint32), (2, 1))
    o = np.zeros((2, per * n), x.dtype)
    start = 32 * per
    if tile:
        body = f"p = pl.sort32(pl.load(x, [0, 0], [2, {n}]), pl.load(index, [0, 0], [2, {n}]))\n"
    else:
        body = "p = pl.sort32(x, index)\n"
    length = start
    while length < per * n:
        body += f"p = pl.mrgsort(p, block_len={length})\n"
        length *= 4
    body += "o = pl.store(p, [0, 0], o)" if tile else "o[:, :] = p"
    run(body, x=x, index=index, o=o)
    at = order(x, index)
    np.testing.assert_array_equal(
        bits_of(o), bits_of(records(np.take_along_axis(x, at, 1), np.take_along_axis(index, at, 1)))
    )


def test_merges_of_several_lists_and_recovery():  # O-2003, O-2005, O-107
    x = np.round(np.random.default_rng(122).standard_normal((3, 128)) * 4).astype(np.float32) + np.float32(0)
    index = np.tile(np.arange(128, dtype=np.uint32), (3, 1))
    outs = {"o0": np.zeros((3, 256), np.float32), "o1": np.zeros((3, 256), np.float32), "o2": np.zeros((3, 128), np.float32),
            "o3": np.zeros((3, 128), np.int32), "o4": np.zeros((3, 192), np.float32), "o5": np.zeros((3, 256), np.float32),
            "o6": np.zeros((3, 64), np.float32), "o7": np.zeros((3, 256), np.float32)}  # fmt: skip
    run(
        """
        p = pl.sort32(x, index)
        q = pl.mrgsort(p[:, 0:64], p[:, 64:128], p[:, 128:192], p[:, 192:256])
        o0[:, :] = q
        o2[:, :] = pl.gather(q, mask_pattern=pl.tile.MaskPattern.P0101)
        o3[:, :] = pl.gather(q, mask_pattern=pl.tile.MaskPattern.P1010, output_dtype=pl.INT32)
        o4[:, :] = pl.tensor.mrgsort(src0=p[:, 0:64], src1=p[:, 64:128], src2=p[:, 128:192])
        t = pl.sort32(pl.load(x, [0, 0], [3, 128]), pl.load(index, [0, 0], [3, 128]))
        tmp = pl.create_tile([3, 256], dtype=pl.FP32)
        o1 = pl.store(pl.mrgsort(t[:, 0:64], t[:, 64:128], t[:, 128:192], t[:, 192:256], tmp), [0, 0], o1)
        o5 = pl.store(pl.tile.mrgsort_format2(t[:, 0:64], t[:, 64:128], t[:, 128:192], t[:, 192:256], tmp, exhausted=False), [0, 0], o5)
        small = pl.create_tile([3, 64], dtype=pl.FP32)
        o6 = pl.store(pl.tile.mrgsort(t[:, 0:64], t[:, 64:128], tmp=small), [0, 0], o6)
        o7 = pl.store(pl.tile.mrgsort_format1(t, 64), [0, 0], o7)
        """,
        x=x, index=index, **outs,
    )  # fmt: skip
    at = order(x, index)
    full = records(np.take_along_axis(x, at, 1), np.take_along_axis(index, at, 1))
    for key in ("o0", "o1", "o5", "o7"):
        np.testing.assert_array_equal(bits_of(outs[key]), bits_of(full), err_msg=key)
    np.testing.assert_array_equal(outs["o2"], np.take_along_axis(x, at, 1))
    np.testing.assert_array_equal(outs["o3"], at)
    three = order(x[:, :96], index[:, :96])
    np.testing.assert_array_equal(
        bits_of(outs["o4"]),
        bits_of(records(np.take_along_axis(x[:, :96], three, 1), np.take_along_axis(index[:, :96], three, 1))),
    )
    two = order(x[:, :64], index[:, :64])
    want = records(np.take_along_axis(x[:, :64], two, 1), np.take_along_axis(index[:, :64], two, 1))
    np.testing.assert_array_equal(bits_of(outs["o6"]), bits_of(np.ascontiguousarray(want[:, :64])))


def test_run_time_block_length_and_ragged_tails():  # O-2002
    x = np.round(np.random.default_rng(123).standard_normal((1, 32 * 7)) * 9).astype(np.float32) + np.float32(0)
    index = np.arange(224, dtype=np.uint32)[None]
    o = np.zeros((1, 448), np.float32)
    run(
        "o[:, :] = pl.mrgsort(pl.sort32(x, index), block_len=n)", "a2a3sim", {"n": ("INT32", 64)}, x=x, index=index, o=o
    )
    parts = []
    for a, b in ((0, 128), (128, 224)):
        at = order(x[:, a:b], index[:, a:b])
        parts.append(records(np.take_along_axis(x[:, a:b], at, 1), np.take_along_axis(index[:, a:b], at, 1)))
    np.testing.assert_array_equal(bits_of(o), bits_of(np.concatenate(parts, 1)))


def test_block_length_beyond_the_row_leaves_one_run():  # O-2002
    x = np.round(np.random.default_rng(124).standard_normal((2, 96)) * 9).astype(np.float32) + np.float32(0)
    index = np.arange(192, dtype=np.uint32).reshape(2, 96)
    o = np.zeros((2, 192), np.float32)
    run(f"o[:, :] = pl.mrgsort(pl.sort32(x, index), block_len={2**62})", "a2a3sim", {}, x=x, index=index, o=o)
    groups = [slice(at, at + 32) for at in (0, 32, 64)]
    orders = [order(x[:, g], index[:, g]) for g in groups]
    parts = [
        records(np.take_along_axis(x[:, g], at, 1), np.take_along_axis(index[:, g], at, 1))
        for g, at in zip(groups, orders, strict=True)
    ]
    np.testing.assert_array_equal(bits_of(o), bits_of(np.concatenate(parts, 1)))


# ---------------------------------------------------------------- creation


@pytest.mark.parametrize("dtype", ["INT16", "INT32", "UINT16", "UINT32"])
def test_ranges(dtype):  # O-505
    outs = {f"o{i}": np.zeros((1, 40), NUMPY[dtype]) for i in range(6)} | {"o6": np.zeros((1, 1, 24), NUMPY[dtype])}
    run(
        f"""
        o0[:, :] = pl.arange(3, [1, 40], dtype=pl.{dtype})
        o1[:, :] = pl.tensor.ci(start=s, shape=[1, 40], dtype=pl.{dtype}, descending=True)
        o2[:, :] = pl.tensor.arange(pl.const(9, pl.{dtype}), [1, 40], pl.{dtype}, False)
        o3 = pl.store(pl.tile.arange(5, [1, 40], pl.{dtype}, descending=True), [0, 0], o3)
        o4 = pl.store(pl.tile.ci(s, (1, 40), dtype=pl.{dtype}), [0, 0], o4)
        o5[:, :] = pl.arange(s, [1, 40], pl.{dtype})
        o6[:, :, :] = pl.arange(1, [1, 1, 24], pl.{dtype})
        """,
        "a2a3sim", {"s": (dtype, 7)}, **outs,
    )  # fmt: skip
    k = np.arange(40)
    for i, want in enumerate([3 + k, 7 - k, 9 + k, 5 - k, 7 + k, 7 + k]):
        np.testing.assert_array_equal(outs[f"o{i}"][0], want.astype(NUMPY[dtype]), err_msg=str(i))
    np.testing.assert_array_equal(outs["o6"][0, 0], 1 + np.arange(24))


@pytest.mark.parametrize("dtype", ["INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "FP16", "BF16", "FP32"])
def test_triangles(dtype):  # O-506, O-310
    platform = "a5sim" if dtype in ("INT8", "UINT8", "BF16") else "a2a3sim"
    outs = {f"o{i}": np.full((12, 40), 7, NUMPY[dtype]) for i in range(4)}
    run(
        f"""
        o0 = pl.store(pl.tri(0, [12, 40], dtype=pl.{dtype}), [0, 0], o0)
        o1 = pl.store(pl.tile.tri(-3, [12, 40], dtype=pl.{dtype}, upper=True), [0, 0], o1)
        o2 = pl.store(pl.tri(s, [12, 40], [5, 9], pl.{dtype}), [0, 0], o2)
        o3 = pl.store(pl.tile.tri(diagonal=5, shape=[12, 40], valid_shape=[n, 33], dtype=pl.{dtype}), [0, 0], o3)
        """,
        platform, {"s": ("INT32", 2), "n": ("INT32", 7)}, **outs,
    )  # fmt: skip
    one = np.ones((12, 40))
    np.testing.assert_array_equal(outs["o0"].astype(np.float32), np.tril(one))
    np.testing.assert_array_equal(outs["o1"].astype(np.float32), np.triu(one, -3))
    a, b = np.full((12, 40), 7.0), np.full((12, 40), 7.0)
    a[:5, :9], b[:7, :33] = np.tril(one, 2)[:5, :9], np.tril(one, 5)[:7, :33]
    np.testing.assert_array_equal(outs["o2"].astype(np.float32), a)
    np.testing.assert_array_equal(outs["o3"].astype(np.float32), b)


@pytest.mark.parametrize("dtype", ["FP32", "FP16", "BF16", "INT8", "INT32", "UINT16", "INT64"])
def test_constants(dtype):  # O-501, O-504, O-304
    outs = {f"o{i}": np.zeros((4, 16), NUMPY[dtype]) for i in range(6)}
    run(
        f"""
        o0[:, :] = pl.full([4, 16], dtype=pl.{dtype}, value=3)
        o1[:, :] = pl.tensor.full([4, 16], pl.{dtype}, 3.0)
        o2 = pl.store(pl.tile.full(value=3, dtype=pl.{dtype}, shape=[4, 16]), [0, 0], o2)
        c = pl.create_tensor([4, 16], dtype=pl.{dtype}, init_value=0)
        o3[:, :] = pl.add(c, 3)
        o4[:, :] = pl.full((4, 16), value=pl.const(3, pl.{dtype}), dtype=pl.{dtype})
        z = pl.tensor.create(shape=[4, 16], dtype=pl.{dtype}, layout=pl.TensorLayout.ND, manual_dep=False)
        z[:, :] = pl.full([4, 16], pl.{dtype}, 3)
        o5[:, :] = z
        """,
        **outs,
    )  # fmt: skip
    for key, got in outs.items():
        np.testing.assert_array_equal(got.astype(np.float64), np.full((4, 16), 3.0), err_msg=key)
    assert dtype not in FLOATS or outs["o0"].dtype == NUMPY[dtype]


@pytest.mark.parametrize("rounds", [7, 10])
def test_random_words(rounds):  # O-507, B-35: chunk rule with 300 columns, valid region only
    shape = (3, 300)
    o0, o1, o2 = np.zeros(shape, np.uint32), np.full(shape, 5, np.int32), np.zeros(shape, np.uint32)
    run(
        f"""
        o0[:, :] = pl.random(1, 2, -1, -1, -1, 6, [3, 300], rounds={rounds})
        o1 = pl.store(pl.tile.random(1, 2, -1, -1, -1, s, [3, 300], [2, 270], pl.INT32, {rounds}), [0, 0], o1)
        o2[:, :] = pl.tensor.random(key0=1, key1=2, counter0=-1, counter1=-1, counter2=-1, counter3=s, shape=[3, 300], rounds={rounds})
        """,
        "a5sim", {"s": ("INT32", 6)}, o0=o0, o1=o1, o2=o2,
    )  # fmt: skip
    low = 0xFFFFFFFF

    def philox(counter):
        c = [counter >> 32 * i & low for i in range(4)]
        k0, k1 = 1, 2
        for r in range(rounds):
            if r:
                k0, k1 = k0 + 0x9E3779B9 & low, k1 + 0xBB67AE85 & low
            p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [p1 >> 32 ^ c[1] ^ k0, p1 & low, p0 >> 32 ^ c[3] ^ k1, p0 & low]
        return c

    base = low | low << 32 | low << 64 | 6 << 96
    want = np.zeros(shape, np.uint32)
    for row in range(3):
        for chunk in range(2):
            for lane in range(64):
                words = philox(base + lane & (1 << 128) - 1)
                for r in range(4):
                    column = chunk * 256 + r * 64 + lane
                    if column < 300:
                        want[row, column] = words[r]
            base = base + 300 // 4 & (1 << 128) - 1
    np.testing.assert_array_equal(o0, want)
    np.testing.assert_array_equal(o2, want)
    part = np.full(shape, 5, np.int32)
    part[:2, :270] = want.view(np.int32)[:2, :270]
    np.testing.assert_array_equal(o1, part)
