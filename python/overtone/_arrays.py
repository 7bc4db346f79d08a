"""Arrays of numbers, from what callers pass. An error names the argument and the row, and says what
to do."""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

#: The name of a row in an error.
RowName = Callable[[int], str]


def row_name(row: int) -> str:
    """The name of a row of an array."""
    return f"row {row}"


def array_of(
    name: str, values: Any, expected: str = "numbers", row_name: RowName = row_name
) -> NDArray[Any]:
    """An array of booleans or numbers, with the type that they have.

    Raises:
        ValueError: For a masked value, a missing value, text, times, rows of different shapes, and
            anything else that is not such an array.
    """
    if values is None:
        raise ValueError(f"{name}: expected {expected}, got None")
    _check_container(name, values, expected)
    _check_mask(name, values, row_name)
    _check_missing(name, values, row_name)
    try:
        array = np.asarray(_without_extension_type(values))
    except Exception as error:
        # Libraries raise any exception here.
        reason = _ragged(values, row_name) or " ".join(str(error).split())
        raise ValueError(f"{name}: {reason}") from None
    if array.dtype.kind == "O":
        array = _of_objects(name, array, values, expected, row_name)
    if array.dtype.kind not in "biuf":
        what, way_out = _other_type(array)
        if expected != "numbers":
            way_out = f"Use {expected}"
        raise ValueError(f"{name}: expected {expected}, got {what}. {way_out}")
    # Files do not store longer types.
    return array.astype(np.float64) if array.dtype.itemsize > 8 else array


def column_of(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """One value for each step, ``[steps]`` or ``[steps, 1]``."""
    if array.ndim == 2 and array.shape[1] == 1:
        return array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name}: expected one for each step, got shape {array.shape}")
    return array


def numbers_of(name: str, values: Any, row_name: RowName = row_name) -> NDArray[Any]:
    """Rows of numbers, each within float32 and finite."""
    array = array_of(name, values, row_name=row_name)
    if array.ndim == 0 or 0 in array.shape[1:]:
        raise ValueError(
            f"{name}: expected at least one number for each step, got shape {array.shape}"
        )
    if array.dtype.kind != "f" or len(array) == 0:
        return array
    with np.errstate(over="ignore"):
        rounded = array.astype(np.float32)
    wrong = ~np.isfinite(rounded.reshape(len(rounded), -1)).all(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        if np.isfinite(array[row]).all():
            largest = np.abs(array[row]).max()
            raise ValueError(f"{name}: {row_name(row)} exceeds float32 ({largest:g})")
        raise ValueError(f"{name}: {row_name(row)} is not finite. Correct it, or leave it out")
    return array


def flags_of(name: str, values: Any, row_name: RowName = row_name) -> NDArray[np.bool_]:
    """Flags, from booleans or numbers that are 0 or 1."""
    array = array_of(name, values, "true or false, 1 or 0", row_name)
    array = column_of(name, array.reshape(1) if array.ndim == 0 else array)
    # NaN is neither.
    wrong = (array != 0) & (array != 1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{name}: {row_name(row)} is {array[row]}, not 0 or 1")
    return array.astype(bool)


def whole_number(name: str, value: Any) -> int:
    """One whole number; a number as text or a truth value is not one."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise ValueError(f"{name}={value!r}: expected a whole number")
    return int(value)


def _check_container(name: str, values: Any, expected: str) -> None:
    if isinstance(values, Mapping):
        keys = ", ".join(map(str, cast("Mapping[object, object]", values)))
        raise ValueError(
            f"{name}: expected one array, got a dict of {keys}. Use "
            f"numpy.concatenate([...], axis=1) to put its parts side by side"
        )
    if isinstance(values, (str, bytes)):
        raise ValueError(f"{name}: expected {expected}, got text, {values!r:.40}")
    if isinstance(values, (Iterator, Set)):
        kind = type(cast("object", values)).__name__
        raise ValueError(f"{name}: expected an array, got a {kind}. Use a list")


def _check_mask(name: str, values: Any, row_name: RowName) -> None:
    """Refuses masked values, which an array would contain as if they were measured."""
    parts = enumerate(cast("list[Any]", values)) if isinstance(values, (list, tuple)) else ()
    for row, part in [(None, values), *parts]:
        if isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part):
            mask = np.ma.getmaskarray(cast("Any", part))
            if row is None and mask.ndim:
                row = int(np.argmax(mask.reshape(len(mask), -1).any(axis=1)))
            where = "a value" if row is None else row_name(row)
            raise ValueError(
                f"{name}: {where} is masked. Fill it (numpy.ma.filled), or leave it out"
            )


def _check_missing(name: str, values: Any, row_name: RowName) -> None:
    """Refuses missing values in a table or column of pandas."""
    if type(values).__module__.partition(".")[0] != "pandas" or not hasattr(values, "isna"):
        return
    missing = np.asarray(values.isna())
    if missing.any():
        row = int(np.argmax(missing.reshape(len(missing), -1).any(axis=1)))
        raise ValueError(f"{name}: {row_name(row)} has no value. Fill it, or leave the row out")


def _without_extension_type(values: Any) -> Any:
    """A column or table of pandas with NumPy's types, which nullable types would not become."""
    if not hasattr(values, "to_numpy"):
        return values
    dtypes = getattr(values, "dtypes", None)
    kinds = list(dtypes) if hasattr(dtypes, "__iter__") else [getattr(values, "dtype", None)]
    known = [getattr(kind, "numpy_dtype", None) for kind in kinds]
    if None not in known and all(kind.kind in "biuf" for kind in known):
        return values.to_numpy(np.result_type(*known))
    return values


def _ragged(values: Any, row_name: RowName) -> str | None:
    """What is wrong with rows of different shapes, if they are."""
    first = None
    for row, each in enumerate(values if isinstance(values, (list, tuple, np.ndarray)) else ()):
        try:
            shape = np.shape(each)
        except ValueError:
            return f"{row_name(row)} has parts of different lengths"
        first = shape if first is None else first
        if shape != first:
            return (
                f"{row_name(row)} has shape {shape}, and {row_name(0)} has {first}. Use rows of "
                "one shape"
            )
    return None


def _of_objects(
    name: str, array: NDArray[Any], values: Any, expected: str, row_name: RowName
) -> NDArray[Any]:
    """An array of Python objects as one of numbers, if they are numbers or equal rows of them."""
    if array.ndim == 0:
        kind = type(values).__name__
        dense = ". Use its toarray()" if hasattr(values, "toarray") else ""
        raise ValueError(f"{name}: expected {expected}, got a {kind}{dense}")
    for (row, *_), item in np.ndenumerate(array):
        wrong = _not_a_number(item)
        if wrong is not None:
            what, way_out = wrong
            if expected != "numbers":
                way_out = f"Use {expected}"
            raise ValueError(f"{name}: {row_name(row)} {what}. {way_out}")
    if all(isinstance(item, numbers.Number) for item in array.flat):
        exact = (int, float, np.number, np.bool_)
        items = [item if isinstance(item, exact) else float(item) for item in array.flat]
        return np.array(items).reshape(array.shape)
    reason = _ragged(array, row_name)
    if reason is not None or array.ndim > 1:
        raise ValueError(f"{name}: {reason or 'expected numbers, got rows in rows'}")
    return np.stack([
        array_of(f"{name}: {row_name(row)}", item, expected) for row, item in enumerate(array)
    ])


def _not_a_number(item: Any) -> tuple[str, str] | None:
    """What an object is that is neither a number nor a row of numbers, and what to do."""
    if item is None or type(item).__name__ in ("NAType", "NaTType"):
        return "has no value", "Fill it, or leave the row out"
    if isinstance(item, (str, bytes)):
        return f"is text, {item!r:.40}", TEXT
    if isinstance(item, (datetime.date, datetime.time, datetime.timedelta)):
        return f"is a {type(item).__name__}", TIMES
    if isinstance(item, complex):
        return "is complex", COMPLEX
    if isinstance(item, (numbers.Number, list, tuple, np.ndarray)) or hasattr(item, "__array__"):
        return None
    return f"is a {type(item).__name__}", "Use numbers"


TEXT = "Use numbers (astype(float)); for names, numpy.unique(names, return_inverse=True)[1]"
TIMES = "Use seconds: (times - times[0]) / numpy.timedelta64(1, 's')"
COMPLEX = "Use the real and the imaginary part as two numbers"


def _other_type(array: NDArray[Any]) -> tuple[str, str]:
    """What an array holds in place of numbers, and what to do."""
    if array.dtype.kind in "UST":
        return "text", TEXT
    if array.dtype.kind in "mM":
        return str(array.dtype), TIMES
    if array.dtype.kind == "c":
        return str(array.dtype), COMPLEX
    if array.dtype.names:
        fields = ", ".join(array.dtype.names)
        return f"records of {fields}", "Use numpy.column_stack of the fields"
    return str(array.dtype), "Use numbers"
