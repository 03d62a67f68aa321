"""Errors: their texts, and that they cross process boundaries."""

from __future__ import annotations

import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from pushdown import errors
from pushdown.errors import Error, PipelineError, SampleError, StateError, UnavailableError, native_errors

EXAMPLES = [
    PipelineError("unknown step", "decode | nonsense", 9),
    SampleError("train/a.jpg", "NoSuchKey", "it is not there", 17, 3),
    StateError("the seed", 7, 8, "another seed is another order"),
    *(
        getattr(errors, name)("a message")
        for name in errors.__all__
        if name not in ("PipelineError", "SampleError", "StateError", "native_errors")
    ),
]


def fail(number: int) -> None:
    error = EXAMPLES[number]
    error.add_note("a note")
    raise error


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_pickles_with_its_members(error: Error) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_an_error_crosses_a_process_boundary() -> None:
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as executor:
        for number, error in enumerate(EXAMPLES):
            raised: Any = executor.submit(fail, number).exception()
            assert (type(raised), str(raised)) == (type(error), str(error))
            assert raised.__notes__ == ["a note"]


def test_a_pipeline_error_has_a_caret_below_the_fault() -> None:
    # The position counts bytes of UTF-8.
    error = PipelineError("unknown step `nonsense`", "decode |\n  é('ü') | nonsense", 22)
    assert str(error) == "unknown step `nonsense`\n    é('ü') | nonsense\n             ^"


HOSTILE = "a\n\x1b]0;title\x07"
ESCAPED = r"a\u{a}\u{1b}]0;title\u{7}"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (errors.RefusedError(HOSTILE), ESCAPED),
        (SampleError(HOSTILE, "Evil", HOSTILE, member=HOSTILE), f"sample `{ESCAPED} member {ESCAPED}` failed: Evil: {ESCAPED}"),
        (PipelineError(HOSTILE, "decode |\n  resize", 11), f"{ESCAPED}\n    resize\n    ^"),
        (StateError("the seed", HOSTILE, 8, "why"), f"cannot load the state: expected the seed {ESCAPED}, found 8: why"),
    ],
    ids=["RefusedError", "SampleError", "PipelineError", "StateError"],
)
def test_a_text_has_no_control_characters_of_a_store(error: Error, text: str) -> None:
    assert str(error) == text
    assert HOSTILE in error.args or isinstance(error, PipelineError)
    assert str(pickle.loads(pickle.dumps(error))) == text


def test_a_sample_error_names_key_position_and_code() -> None:
    error = SampleError("a.jpg", "NoSuchKey", "it is not there", 17)
    assert str(error) == "sample `a.jpg` at position 17 failed: NoSuchKey: it is not there"
    assert str(SampleError("a.jpg", "NoSuchKey", "it is not there")).startswith("sample `a.jpg` failed")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("config", errors.ConfigError),
        ("credentials", errors.CredentialsError),
        ("not_a_gateway", errors.NotAGatewayError),
        ("refused", errors.RefusedError),
        ("unreachable", UnavailableError),
        ("unavailable", UnavailableError),
        ("timeout", UnavailableError),
        ("interrupted", UnavailableError),
        ("protocol", errors.ProtocolError),
        ("sample", Error),
        ("internal", errors.InternalError),
        ("forked", errors.ForkedReaderError),
        ("pipeline", PipelineError),
    ],
)
def test_each_kind_of_native_error_has_its_exception(native: Any, kind: str, expected: type[Error]) -> None:
    with pytest.raises(expected) as raised, native_errors("decode"):
        raise native.NativeError(kind, "what failed", 3)
    assert type(raised.value) is expected
    assert str(raised.value).startswith("what failed")
    assert raised.value.retryable == (expected is UnavailableError)


def test_other_exceptions_pass_through() -> None:
    @native_errors()
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
