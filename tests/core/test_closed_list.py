"""A formula may use only what every reading can follow; its syntax tree shows it."""

from __future__ import annotations

import ast
import inspect
import textwrap

import pytest

from tests.registry import each_formula

OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
NUMPY = {"maximum", "minimum", "sqrt", "exp", "expm1", "log", "log1p", "log2", "ceil", "floor"}
# name -> arguments
HELPERS = {
    "select": 3,
    "maximum": 2,
    "minimum": 2,
    "ceil_ratio": 2,
    "ceil": 1,
    "floor": 1,
    "sqrt": 1,
    "exp": 1,
    "expm1": 1,
    "log": 1,
    "log1p": 1,
    "log2": 1,
    "elementwise_maximum": 2,
    "elementwise_minimum": 2,
    "normal_cdf": 1,
}


class NotAllowedError(AssertionError):
    """Something beyond the closed list."""


def refuse(node, why):
    raise NotAllowedError(f"line {getattr(node, 'lineno', 0)}: {why}: {ast.unparse(node)}")


def check_function(definition):
    """Raise unless the function's body is made of the closed list only."""
    parameters = definition.args
    if parameters.posonlyargs or parameters.kwonlyargs or parameters.vararg or parameters.kwarg:
        refuse(definition, "parameters other than plain ones")
    for default in parameters.defaults:
        if (
            not (isinstance(default, ast.Constant) and type(default.value) in (int, float))
            and ast.unparse(default) != "np.pi"
        ):
            refuse(default, "a default that is no number")
    defined_names = {parameter.arg for parameter in parameters.args}
    *body, last = definition.body
    if (
        body
        and isinstance(body[0], ast.Expr)
        and isinstance(body[0].value, ast.Constant)
        and isinstance(body[0].value.value, str)
    ):
        body = body[1:]
    for statement in body:
        if (
            not isinstance(statement, ast.Assign)
            or len(statement.targets) != 1
            or not isinstance(statement.targets[0], ast.Name)
        ):
            refuse(statement, "a statement that is no assignment to a name")
        check_expression(statement.value, defined_names)
        defined_names.add(statement.targets[0].id)
    if not isinstance(last, ast.Return) or last.value is None:
        refuse(last, "the last statement returns no value")
    check_expression(last.value, defined_names)


def check_expression(node, defined_names):
    match node:
        case ast.Constant():
            if type(node.value) not in (int, float):
                refuse(node, "a constant that is no number")
        case ast.Name():
            if node.id not in defined_names:
                refuse(node, "a name that is neither parameter nor assigned")
        case ast.BinOp(left, operator, right):
            if not isinstance(operator, OPERATORS):
                refuse(node, "an operator beyond + - * / **")
            check_expression(left, defined_names)
            check_expression(right, defined_names)
        case ast.UnaryOp(ast.USub(), operand):
            check_expression(operand, defined_names)
        case ast.Call(function, arguments, []):
            check_call(node, function, arguments, defined_names)
        case _:
            refuse(node, "an expression beyond the closed list")


def check_call(node, function, arguments, defined_names):
    match function:
        case ast.Attribute(ast.Name("np"), name) if name in NUMPY and len(arguments) == (
            2 if name in ("maximum", "minimum") else 1
        ):
            pass
        case ast.Name(name) if HELPERS.get(name) == len(arguments):
            if name == "select":
                condition, *arguments = arguments
                check_condition(condition, defined_names)
        case _:
            refuse(node, "a call beyond the closed list")
    for argument in arguments:
        check_expression(argument, defined_names)


def check_condition(node, defined_names):
    if (
        not isinstance(node, ast.Compare)
        or len(node.ops) != 1
        or not isinstance(node.ops[0], COMPARISONS)
    ):
        refuse(node, "the condition of select is no single comparison by size")
    check_expression(node.left, defined_names)
    check_expression(node.comparators[0], defined_names)


def tree_of(function):
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    return definition


@each_formula
def test_formula_keeps_to_the_closed_list(formula):
    check_function(tree_of(formula.function))


GOOD = [
    "return a * b + a / b - a ** b",
    "return -a",
    "'Words.'\n    c = a + 1.5\n    return c * b",
    "return np.maximum(a, np.minimum(b, 2)) + np.sqrt(a) + np.exp(a) + np.log(a) + np.log2(a) + "
    "np.ceil(a) + np.floor(b)",
    "return select(a <= b, ceil_ratio(a, b), normal_cdf(a))",
    "return select(a > select(a < b, a, b), a, b)",
]
BAD = [
    "if a > b:\n        return a\n    return b",
    "for i in a:\n        b = b + i\n    return b",
    "while a:\n        a = a - 1\n    return a",
    "return a and b",
    "return not a",
    "return a or b",
    "return max(a, b)",
    "return min(a, b)",
    "return sum(a)",
    "return abs(a)",
    "return float(a)",
    "return extended_price(a, b)",
    "return a if a > b else b",
    "return a > b",
    "return select(a, a, b)",
    "return select(a == b, a, b)",
    "return select(0 < a < b, a, b)",
    "return select(a, b)",
    "return a // b",
    "return a % b",
    "return a @ b",
    "return +a",
    "return ~a",
    "return np.where(a > b, a, b)",
    "return np.interp(a, b, b)",
    "return np.sum(a)",
    "return np.maximum(a, b, out=a)",
    "return np.maximum.reduce(a)",
    "return np.sqrt(a, b)",
    "return a.sum()",
    "return a[0]",
    "return [a, b]",
    "return (lambda x: x)(a)",
    "return TABLE * a",
    "return 'text'",
    "return True * a",
    "return 2j * a",
    "a += b\n    return a",
    "c, d = a, b\n    return c",
    "c = d = a\n    return c",
    "c: float = a\n    return c",
    "print(a)\n    return a",
    "import math\n    return math.pi * a",
    "return (c := a)",
    "pass",
    "return",
    "a = b",
]


@pytest.mark.parametrize("body", GOOD)
def test_check_accepts_what_the_closed_list_allows(body):
    check_function(ast.parse(f"def f(a, b=1):\n    {body}\n").body[0])


@pytest.mark.parametrize("body", BAD)
def test_check_refuses_what_the_closed_list_lacks(body):
    with pytest.raises(NotAllowedError):
        check_function(ast.parse(f"def f(a, b):\n    {body}\n").body[0])


@pytest.mark.parametrize(
    "parameters", ["*a", "**a", "*, a", "a, /", "a='x'", "a=None", "a=TABLE", "a=True"]
)
def test_the_check_refuses_other_parameters(parameters):
    with pytest.raises(NotAllowedError):
        check_function(ast.parse(f"def f({parameters}):\n    return 1\n").body[0])
