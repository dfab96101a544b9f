"""Errors as data: what they hold, how they print, and where they say the user is."""

import functools
import linecache
import pickle

import jax
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fieldjax.errors as errors
from fieldjax.errors import (
    ArgumentError,
    ConnectivityError,
    DimensionError,
    DomainError,
    DtypeError,
    FieldjaxError,
    FieldjaxWarning,
    IndexOutOfBoundsError,
    Label,
    Location,
    MissingDimensionError,
    NarrowingError,
    OffsetProviderError,
    OwnershipError,
    TracingError,
    render,
    user_location,
)

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, FieldjaxError)]
locations = st.builds(Location, st.just("nowhere.py"), st.integers(1, 99), st.none() | st.integers(0, 9))
texts = st.text(st.characters(categories=["L", "N"]), max_size=9)


@pytest.fixture
def source():
    """A file whose lines the renderer can read: `source(text)` returns its name."""
    name = "<source of a test>"

    def put(text):
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        return name

    yield put
    linecache.cache.pop(name, None)


class TestKinds:
    @pytest.mark.parametrize(
        ("kind", "also"),
        [
            (DimensionError, ValueError),
            (MissingDimensionError, KeyError),
            (DomainError, ValueError),
            (IndexOutOfBoundsError, IndexError),
            (NarrowingError, DomainError),
            (DtypeError, TypeError),
            (ConnectivityError, ValueError),
            (OffsetProviderError, LookupError),
            (TracingError, TypeError),
            (ArgumentError, TypeError),
            (OwnershipError, RuntimeError),
        ],
    )
    def test_are_also_what_python_programs_catch(self, kind, also):
        assert issubclass(kind, also)

    @pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not FieldjaxError])
    def test_document_their_repair(self, kind):
        assert "Wrong" in kind.__doc__
        assert "Fixed" in kind.__doc__
        assert kind.__doc__.count(">>>") >= 2

    @pytest.mark.parametrize("kind", KINDS)
    def test_print_alike(self, kind):
        error = kind("what", notes=["a fact"], hints=["do this"])
        assert str(error) == render(error) == "what\nnote: a fact\nhelp: do this"

    def test_warning(self):
        assert issubclass(FieldjaxWarning, UserWarning)


class TestData:
    @given(
        st.sampled_from(KINDS),
        texts,
        st.none() | locations,
        st.lists(st.builds(Label, texts, locations)),
        st.lists(texts),
        st.lists(texts),
    )
    def test_survives_pickling(self, kind, message, location, labels, notes, hints):
        error = kind(message, location=location, labels=labels, notes=notes, hints=hints)
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is kind
        assert vars(again) == vars(error)
        assert str(again) == str(error)

    def test_the_innermost_location_wins(self):
        inner, outer = Location("a.py", 1), Location("b.py", 2)
        error = FieldjaxError("what")
        assert error.with_location(None).location is None
        assert error.with_location(inner) is error
        assert error.with_location(outer).location is inner

    def test_parts_are_tuples(self):
        error = FieldjaxError("what", notes=(n for n in "ab"))
        assert (error.labels, error.notes, error.hints) == ((), ("a", "b"), ())


class TestRendering:
    def test_source_with_labels(self, source):
        file = source("def smooth(f, g):\n    return f(V2E) + g\n")
        where = Location(file, 2, 4, 21, "smooth")
        error = DimensionError(
            "the dimensions do not match",
            location=where,
            labels=[
                Label("lives on (Vertex, V2E)", Location(file, 2, 11, 17)),
                Label("lives on (Cell)", Location(file, 2, 20, 21)),
            ],
            notes=["a note\nof two lines"],
            hints=["reduce over V2E first"],
        )
        assert str(error) == (
            "the dimensions do not match\n"
            f"  --> {file}:2, in smooth\n"
            "2 |     return f(V2E) + g\n"
            "  |     ^^^^^^^^^^^^^^^^^\n"
            "  |            ^^^^^^ lives on (Vertex, V2E)\n"
            "  |                     ^ lives on (Cell)\n"
            "note: a note\n"
            "      of two lines\n"
            "help: reduce over V2E first"
        )

    def test_labels_of_several_lines_and_files(self, source):
        file = source("\n" * 8 + "a = 1\nb = 2\n")
        error = FieldjaxError(
            "what",
            labels=[
                Label("second", Location(file, 10, 4, 5)),
                Label("first", Location(file, 9, 0, 1)),
                Label("elsewhere", Location("missing.py", 3, 0, 1)),
            ],
        )
        assert str(error) == (
            "what\n"
            f"   --> {file}:9\n"
            " 9 | a = 1\n"
            "   | ^ first\n"
            "10 | b = 2\n"
            "   |     ^ second\n"
            "  --> missing.py:3\n"
            "  | elsewhere"
        )

    def test_a_label_on_the_location_takes_its_place(self, source):
        where = Location(source("f(x)"), 1, 0, 4, "op")
        text = str(FieldjaxError("what", location=where, labels=[Label("here", where)]))
        assert text == f"what\n  --> {where}\n1 | f(x)\n  | ^^^^ here"

    def test_an_expression_that_goes_on_is_underlined_to_the_end_of_its_line(self, source):
        where = Location(source("x = f(\n    g)"), 1, 4)
        assert str(FieldjaxError("what", location=where)).endswith("1 | x = f(\n  |     ^^")

    def test_without_columns_or_source(self, source):
        assert str(FieldjaxError("what", location=Location(source("f(x)"), 1))).endswith(":1\n1 | f(x)")
        assert str(FieldjaxError("what", location=Location("gone.py", 7))) == "what\n  --> gone.py:7"

    @given(texts, texts)
    def test_columns_are_bytes_and_carets_are_characters(self, before, under):
        line = f"{before}\t{under}!"
        start = len(before.encode()) + 1
        file = "<source of a property>"
        linecache.cache[file] = (len(line), None, [line], file)
        error = FieldjaxError("what", location=Location(file, 1, start, start + len(under.encode())))
        carets = str(error).splitlines()[-1].removeprefix("  | ")
        assert carets == f"{' ' * len(before)}\t{'^' * max(1, len(under))}"


def here(*_):
    return user_location(skip_internal=False)


class TestUserLocation:
    def test_is_the_expression_that_asks(self):
        where = (3, user_location())[1]
        assert where.file == __file__
        assert where.function == "TestUserLocation.test_is_the_expression_that_asks"
        line = linecache.getline(where.file, where.line)
        assert line[where.column : where.end_column] == "user_location()"

    def test_skips_fieldjax_jax_and_what_stands_between(self, monkeypatch):
        """Through a frame of each: what a user's call of a recorded operation looks like."""
        found = []

        def record(x):
            found.append(user_location())
            return x

        record.__code__ = record.__code__.replace(co_filename=errors.__file__)
        through = functools.singledispatch(record)
        jax.make_jaxpr(through)(1.0)
        line = linecache.getline(__file__, found[0].line)
        assert line[found[0].column : found[0].end_column] == "jax.make_jaxpr(through)(1.0)"

    def test_generated_code_of_ours_is_internal(self):
        scope = {"user_location": user_location}
        exec(compile("def generated(): return user_location()", "<fieldjax generated>", "exec"), scope)
        assert scope["generated"]().file == __file__

    def test_the_caller_on_request(self):
        assert here().function == "here"

    def test_an_expression_of_several_lines_has_no_end(self):
        where = here(
            1,
            2,
        )
        assert where.end_column is not None
        where = user_location(
            skip_internal=True,
        )
        assert where.column is not None
        assert where.end_column is None

    def test_at_module_level_there_is_no_function(self):
        scope = {"user_location": user_location}
        exec(compile("found = user_location()", "program.py", "exec"), scope)
        assert (scope["found"].function, str(scope["found"])) == (None, "program.py:1")
