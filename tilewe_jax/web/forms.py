"""Checks of untrusted JSON values."""

from typing import Any

NUMBER = (int, float)


def fits(value: Any, form: Any) -> bool:
    """Return whether a JSON value has a form.

    Args:
      value: the value.
      form: a type, which the value must have exactly (``True`` is not an ``int``); ``object``, any value; ``[form]``, a list of
        such values; a dict of forms, an object with at least these fields; a tuple of alternative forms; or a constant.
    """
    if form is object:
        return True
    if isinstance(form, type):
        return type(value) is form
    if isinstance(form, list):
        return isinstance(value, list) and all(fits(item, form[0]) for item in value)
    if isinstance(form, dict):
        return isinstance(value, dict) and all(name in value and fits(value[name], each) for name, each in form.items())
    if isinstance(form, tuple):
        return any(fits(value, each) for each in form)
    return type(value) is type(form) and value == form
