"""Programs that end in products: NumPy, straight-line code, and machine code of any width agree."""

from __future__ import annotations

import numpy as np
import pytest

from linkwork.kernels import Kernel, Port, Program
from linkwork.kernels.export.c_source import c_source
from linkwork.kernels.programs.products import Factor, Product, ProductProgram, Rows, Transfer, mirror
from linkwork.kernels.programs.schedule import Layout
from linkwork.kernels.programs.trace import trace


@pytest.fixture(autouse=True)
def loops(monkeypatch):
    """Loops, however small the products are."""
    monkeypatch.setattr("linkwork.kernels.programs.products.STRAIGHT_BATCH", 0)
    monkeypatch.setattr("linkwork.kernels.programs.products.STRAIGHT_PRODUCT", 0)


def products(rows: int, inner: int, width: int) -> ProductProgram:
    """x = A B in every second row and from the second column on, y += A^T[1:] x, and s = A A^T by its lower half."""

    def body(xp, symbol):
        u = symbol("u", 3)
        A = xp.vstack([xp.hstack([(i + 1) * u[k % 3, 0] + i * k for k in range(inner)]) for i in range(rows)])
        B = xp.vstack([xp.hstack([xp.sin(u[(k + c) % 3, 0]) for c in range(width)]) for k in range(inner)])
        return {"v": 2 * u, "A": A, "AT": A.T, "B": B, "y": xp.constant(np.ones((inner, width + 1)))}

    shapes = {"A": (rows, inner), "AT": (inner, rows), "B": (inner, width), "y": (inner, width + 1)}
    whole, across = tuple(range(rows)), tuple(range(inner))
    x = Rows(tuple(("x", 2 * i) for i in whole), 1)
    steps = [
        Product(x, Factor("A", whole, across), Rows(tuple(("B", k) for k in across)), width),
        Product(Rows(tuple(("y", k) for k in across[1:]), 1), Factor("A", across[1:], whole, True), x, width, add=True),
        *(
            Product(Rows((("s", i),)), Factor("A", (i,), across), Rows(tuple(("AT", k) for k in across)), i + 1)
            for i in whole
        ),
        mirror("s", ((i, j) for i in whole for j in whole[i + 1 :])),
        Product(Rows((("x", 1),), 0), Factor("A", (0,), ()), Rows(()), width + 1),
    ]
    further = [Port("x", (2 * rows, width + 1)), Port("s", (rows, rows))]
    return ProductProgram(trace("products", body, shapes=shapes), steps, further, ["v", "y", "x", "s"]).check()


def judged(u: np.ndarray, rows: int, inner: int, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    A = np.array([[(i + 1) * u[k % 3] + i * k for k in range(inner)] for i in range(rows)])
    B = np.array([[np.sin(u[(k + c) % 3]) for c in range(width)] for k in range(inner)])
    y = np.ones((inner, width + 1))
    y[1:, 1:] += A.T[1:] @ (A @ B)
    return A @ B, y, A @ A.T


SIZES = [(1, 2, 1), (5, 3, 8), (9, 4, 13), (3, 5, 20), (2, 7, 30)]


@pytest.mark.parametrize("sizes", SIZES)
def test_products_are_what_they_say(sizes):
    program = products(*sizes)
    u = np.random.default_rng(0).normal(size=(4, 3))
    whole, straight = program.interpret(u), program.unrolled().interpret(u)
    assert isinstance(program.unrolled(), Program)
    for mine, theirs in zip(whole, straight, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-13, atol=1e-12)
    for b in range(4):
        x, y, s = judged(u[b], *sizes)
        np.testing.assert_allclose(whole[2][b][::2, 1:], x, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(whole[1][b], y, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(whole[3][b], s, rtol=1e-12, atol=1e-12)
        assert not whole[2][b][1].any()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("lanes", [1, 2, None])
@pytest.mark.parametrize("sizes", SIZES)
def test_machine_code(sizes, lanes, dtype):
    program = products(*sizes)
    kernel = Kernel(program, lanes=lanes, dtype=dtype, threads=1)
    u = np.random.default_rng(1).normal(size=(19, 3)).astype(dtype)
    expected = program.interpret(u, dtype=dtype)
    tolerance = 1e-13 if dtype == "float64" else 1e-5
    written = [slice(None), slice(None), slice(None, None, 2), slice(None)]
    for rows, mine, theirs in zip(written, kernel(u), expected, strict=True):
        assert mine.shape == theirs.shape
        scale = max(1.0, np.abs(theirs).max())
        first = 1 if rows.step else 0
        np.testing.assert_allclose(mine[:, rows][..., first:], theirs[:, rows][..., first:], atol=tolerance * scale)
    for rows, mine, theirs in zip(written, kernel(u[7]), expected, strict=True):
        scale = max(1.0, np.abs(theirs).max())
        first = 1 if rows.step else 0
        np.testing.assert_allclose(mine[rows][..., first:], theirs[7][rows][..., first:], atol=tolerance * scale)


def test_small_programs_become_straight_lines(monkeypatch):
    """Where these are faster, for batches and for one state: the same results, by other machine code."""
    looped, u = products(5, 3, 8), np.random.default_rng(1).normal(size=(19, 3))
    expected, name = looped.interpret(u), looped.digest
    assert [looped.is_faster_straight(lanes) for lanes in (8, 1)] == [False, False]
    monkeypatch.setattr("linkwork.kernels.programs.products.STRAIGHT_BATCH", looped.operations)
    assert [looped.is_faster_straight(lanes) for lanes in (8, 1)] == [True, False]
    monkeypatch.setattr("linkwork.kernels.programs.products.STRAIGHT_PRODUCT", looped.operations)
    assert [looped.is_faster_straight(lanes) for lanes in (8, 1)] == [True, True]
    assert looped.digest != name, "or loops would be found in the cache"
    kernel = Kernel(looped, threads=1)
    for mine, one, theirs in zip(kernel(u), kernel(u[0]), expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(one, theirs[0], rtol=1e-12, atol=1e-12)


def test_operations_and_c():
    program = products(5, 3, 8)
    assert program.operations == program.start.operations + sum(p.operations for p in program.products)
    assert "void products(" in c_source(program)


def test_results_that_are_no_numbers_are_found():
    kernel = Kernel(products(5, 3, 8), threads=1)
    u = np.random.default_rng(2).normal(size=(5, 3))
    u[3, 1] = np.nan
    result, fine = kernel.judged([u])
    assert not fine
    assert np.isfinite(result.s[[0, 1, 2, 4]]).all()


def test_outputs_that_are_complete_make_place_for_others(monkeypatch):
    """In large programs: p is moved out before q, of its size, is written to the same place."""
    monkeypatch.setattr("linkwork.kernels.object_code.image.LARGE", 0)

    def body(xp, symbol):
        u = symbol("u", 3)
        return {"A": xp.hstack([u, 2 * u, u * u]), "B": xp.hstack([xp.sin(u), u, u])}

    whole = (0, 1, 2)

    def times(C: str, B: str) -> Product:
        rows = (Rows(tuple((n, k) for k in whole)) for n in (C, B))
        return Product(next(rows), Factor("A", whole, whole), next(rows), 3)

    ports = [Port("p", (3, 3)), Port("q", (3, 3))]
    start = trace("places", body, shapes={"A": (3, 3), "B": (3, 3)})
    program = ProductProgram(start, [times("p", "B"), times("q", "B"), times("q", "A")], ports, ["p", "q", "B"]).check()
    parts = program.parts(early=True)
    assert [part.done for part in parts] == [(0,), (2,), (1,)]
    slots = program.places(Layout(8), parts)
    assert slots["p"] == slots["q"]
    u = np.random.default_rng(3).normal(size=(19, 3))
    for mine, theirs in zip(Kernel(program, threads=1)(u), program.interpret(u), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-13, atol=1e-13)


def given_and_written(products: list[Product | Transfer]) -> ProductProgram:
    """3 x 3 matrices A, B and C of a start; C is the output."""

    def body(xp, symbol):
        u = symbol("u", 3)
        return {"A": xp.hstack([u, 2 * u, u * u]), "B": xp.hstack([xp.sin(u), u, u]), "C": xp.hstack([u, u, u + 7])}

    start = trace("given", body, shapes=dict.fromkeys("ABC", (3, 3)))
    return ProductProgram(start, products, [], ["C"]).check()


def assert_kernels_agree(program: ProductProgram) -> None:
    u = np.random.default_rng(4).normal(size=(19, 3))
    (expected,) = program.interpret(u)
    np.testing.assert_allclose(Kernel(program, threads=1)(u).C, expected, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(Kernel(program, threads=1)(u[0]).C, expected[0], rtol=1e-13, atol=1e-13)


def test_elements_that_nobody_reads_are_not_stored():
    """C: the first row is overwritten, the second one added to, the third one left. A: the last column is not used."""
    B = Rows((("B", 0), ("B", 1)))
    program = given_and_written(
        [
            Product(Rows((("C", 0),)), Factor("A", (0,), (0, 1)), B, 3),
            Product(Rows((("C", 1),)), Factor("A", (1,), (0, 1)), B, 3, add=True),
        ]
    )
    assert program.unstored == [{2, 5, 6, 7, 8}, {6, 7, 8}, {0, 1, 2}]
    assert_kernels_agree(program)


@pytest.mark.parametrize("again", [True, False])
def test_mirrored_elements_may_be_read_before_they_are_mirrored_again(again):
    mirrored, A = mirror("C", ((0, 1), (0, 2))), Factor("A", (0, 1), (0, 1))
    added = Product(Rows((("C", 1), ("C", 2))), A, Rows((("C", 0), ("B", 0))), 3, add=True)
    program = given_and_written([mirrored, added, mirrored] if again else [mirrored, added])
    assert_kernels_agree(program)
    assert_kernels_agree(given_and_written([added, mirrored]))


def test_entries_of_one_matrix_are_copied_or_added_to_another():
    """C: one entry is copied over, one added to, which is all of the start's C that is read but for the output."""
    entries = ((0, 1, 2, 0), (1, 1, 0, 2))
    moved = [Transfer("C", "A", entries[:1]), Transfer("C", "B", entries[1:], add=True)]
    program = given_and_written(moved)
    assert program.operations == program.start.operations + 1
    assert program.unstored == [{*range(9)} - {6}, {*range(9)} - {2}, {1}]
    u = np.array([2.0, 3.0, 5.0])
    expected = np.column_stack([u, u, u + 7])
    expected[0, 1], expected[1, 1] = u[2], expected[1, 1] + u[0]
    np.testing.assert_allclose(program.interpret(u)[0], expected)
    np.testing.assert_allclose(program.unrolled().interpret(u)[0], expected)
    assert_kernels_agree(program)
    with pytest.raises(AssertionError, match="no such entry"):
        given_and_written([Transfer("C", "A", ((0, 3, 0, 0),))])
