"""What is refused, where, and in which words."""

from __future__ import annotations

import pytest

from headgate.errors import FilterError
from headgate.xml.language import refusal as text_limits
from headgate.xml.language.parse import parse_filter
from headgate.xml.language.refusal import BAD_FLAGS, BAD_REGEX

# The mark ⟪ stands before the place; it is no part of the text.

UPWARDS = "paths lead downwards; put the condition on the upper step, as in //a[b]/c"
SIBLINGS = "the order of siblings is not part of a filter; ask for both below their parent, as in //a[b]/c"
ABSENT = "a filter says what must be there, not what must be absent; for values there is !="
STEPS = "steps are names, *, @name and text()"
EACH = "subscribe to each alternative, as one filter asks for all of it"
NUMBER = "work the number out, and compare a path with it"
POSITION = "tell nodes apart by what they contain"
ARGUMENTS = "the function takes a path and a text, as in contains(a, 'x')"
MARKED = "a mark stands behind the name of a step, as in [a{val} > 3]"
XPATHS = [
    ("⟪a", "a filter begins at the document: write //a or /a"),
    ("⟪child::a/b", "a filter begins at the document: write //a or /a"),
    ("⟪descendant::a", "a filter begins at the document: write //a"),
    ("⟪attribute::a", "a filter begins at the document: write //@a"),
    ("⟪@a", "a filter begins at the document: write //@a"),
    ("⟪text()", "a filter begins at the document: write //text()"),
    ("⟪.//a", "a filter begins at the document: write / or // in place of ."),
    ("⟪..", "a filter begins at the document: write / or // in place of .."),
    ("//a/⟪..", f".. is not supported: {UPWARDS}"),
    ("//a[⟪1]", f"[1] asks for a position, which is not supported: {POSITION}"),
    ("//a[⟪-1]", f"[-1] asks for a position, which is not supported: {POSITION}"),
    ("//a[⟪'x']", "'x' alone is not a condition: compare a path with it"),
    ("//a[⟪last()]", f"last() is not supported: {POSITION}"),
    ("//a[⟪position() = 2]", f"position() is not supported: {POSITION}"),
    ("//a[⟪not(b)]", f"not() is not supported: {ABSENT}"),
    ("//a[b ⟪or c]", f"or is not supported: {EACH}"),
    ("//a[b = 'x' ⟪or c]", f"or is not supported: {EACH}"),
    ("//a[b⟪|c]", "| is not supported: write one path, or subscribe to each alternative"),
    ("//a ⟪| //b", "| is not supported: write one path, or subscribe to each alternative"),
    ("//a/b/⟪(c|d)", "parentheses in a path are not supported: write one path, or subscribe to each"),
    ("(//a)⟪[1]", "a path cannot go on behind parentheses: write it without them"),
    ("(//a)⟪/b", "a path cannot go on behind parentheses: write it without them"),
    ("//a[⟪count(b) > 2]", "count() is not supported: a path in brackets asks for at least one node"),
    ("//a/⟪ancestor::b", f"ancestor:: is not supported: {UPWARDS}"),
    ("//a/⟪following-sibling::b", f"following-sibling:: is not supported: {SIBLINGS}"),
    ("//a/⟪parent::*", f"parent:: is not supported: {UPWARDS}"),
    ("//a[⟪self::b]", "self:: is not supported: give the step its name, or compare . in brackets"),
    ("//a/⟪descendant-or-self::b", "descendant-or-self:: is not supported: write // before the name"),
    ("//⟪foo::a", "foo:: is no axis"),
    ("//a[b ⟪+ 1 = 2]", f"+ is not supported: {NUMBER}"),
    ("//a[b ⟪* 2 = 2]", f"* is not supported: {NUMBER}"),
    ("//a[b ⟪- 1 = 2]", f"- is not supported: {NUMBER}"),
    ("//a[b ⟪div 2 = 2]", f"div is not supported: {NUMBER}"),
    ("//a[b = ⟪$x]", "$x is a variable, and filters have none: write the value"),
    ("//⟪dc:title", "the prefix dc: is not declared: declare it for the set, or write Q{namespace}title"),
    ("//⟪@dc:title", "the prefix dc: is not declared: declare it for the set, or write @Q{namespace}title"),
    ("//a[⟪//c]", "a path in brackets begins at the step before them: write .//c"),
    ("//a[⟪/c]", "a path in brackets begins at the step before them: write c"),
    ("//a[⟪/child::c]", "a path in brackets begins at the step before them: write c"),
    ("//a[⟪/descendant::c]", "a path in brackets begins at the step before them: write .//c"),
    ("//a[⟪//attribute::c]", "a path in brackets begins at the step before them: write .//@c"),
    ("//a[⟪/c = 3]", "a path in brackets begins at the step before them: write c"),
    ("//a[b < ⟪'text']", "texts have no order: compare with a number, without quotes"),
    ("//a[⟪'3' < b]", "texts have no order: compare with a number, without quotes"),
    ("//a[b = ⟪c]", "c is a path, and paths are compared with a text in quotes or a number only"),
    ("//a[@x = ⟪../@y]", "'..' is a path, and paths are compared with a text in quotes or a number only"),
    ("//a['x' = ⟪'y']", "'y' is compared with another value: one side is a path"),
    ("//a[contains(⟪'x', b)]", "'x' is no path: the first argument is a path, the second a text in quotes"),
    ("//a[contains(b, ⟪c)]", "c is a path: the second argument is a text in quotes"),
    ("//a[⟪contains(b)]", f"contains() takes 2 arguments, not 1: {ARGUMENTS}"),
    ("//a[contains(b, ⟪3)]", "contains() needs a text: write '3' in quotes"),
    ("//a[contains(b, 'x') ⟪= true()]", "a condition is not compared: write it alone"),
    ("//a[⟪. ]", "'.' is always there: compare it with something"),
    ("//a[./⟪.]", "'.' stands at the beginning of a path only: leave it out"),
    ("//a[b/⟪. = 3]", "'.' stands at the beginning of a path only: leave it out"),
    ("//a[⟪]", "the brackets are empty: write a condition, such as [b] or [. = 'x']"),
    ("//a[b = ⟪'x]", "a quote is still open"),
    ("//a⟪{foo}", "'foo' is not a mark: marks are id, val and cont"),
    ("//a⟪{id,id}", "id is marked twice"),
    ("//a{id}⟪{val}", "a step has one mark: join them, as in a{id,val}"),
    ("//a[b]⟪{id}", "a mark stands right behind the name, before the brackets: a{id}[b]"),
    ("//a[b > 3⟪{val}]", MARKED),
    ("//a[.⟪{val} > 3]", MARKED),
    ("//a⟪_{ID}", "_{ID} is a mark of the tree notation: write {ID}, behind a space if the name ends with _"),
    ("//a⟪{id", "a brace is still open: marks are written a{id,val}"),
    ("//a⟪}", "a brace is closed that was not opened"),
    ("//a[b = ⟪1e3]", "1e3 has an exponent: write the number with digits and a point"),
    ("//a[1 ⟪< b < 5]", "one comparison at a time: join two by and, as in [a > 1 and a < 5]"),
    ("//a[b ⟪eq 3]", "eq is not supported: write ="),
    ("//a[b ⟪== 3]", "equality is written with one ="),
    ("//a[b ⟪<> 3]", "unequal is written !="),
    ("//a[b ⟪&& c]", "&& is not an operator of XPath: write and"),
    ("//a ⟪AND //b", "AND is not supported: write and, in lower case"),
    ("//a⟪, //b", "',' is not supported: join paths by and"),
    ("//a/⟪3", "3 is no step: a step is a name, *, @name or text()"),
    ("//a/⟪'x'", "'x' is no step: a step is a name, *, @name or text()"),
    ("//⟪/a", "/ stands behind //: a name is between them"),
    ("//a//⟪", "the filter ends too early: expected a name, an attribute or text()"),
    ("//a/⟪", "the filter ends too early: expected a name, an attribute or text()"),
    ("⟪/", "/ alone is the document: write /* for its root element"),
    ("//⟪", "the filter ends too early: expected a name, an attribute or text()"),
    ("//a[⟪", "the filter ends too early: expected a path or a condition"),
    ("//a⟪]", "']' cannot stand here: expected and or the end"),
    ("//a[b⟪", "the filter ends too early: expected ']' or and"),
    ("//b ⟪'y'", "'y' cannot stand here: expected '/', '//', a mark, '[', a comparison, and or the end"),
    ("//a ⟪b", "b cannot stand here: join conditions by and, steps by / or //"),
    ("//a[b]⟪c", "c cannot stand here: join conditions by and, steps by / or //"),
    ("//@a/⟪b", "an attribute has nothing below it: put it last, or in brackets"),
    ("//text()/⟪a", "a text has nothing below it: put text() last"),
    ("/⟪@a", "only the root element is right below the document: write //@a"),
    ("/⟪attribute::a", "only the root element is right below the document: write //@a"),
    ("/⟪text()", "only the root element is right below the document: write //text()"),
    ("//a[@b[⟪c]]", "an attribute has nothing below it: put it last, or in brackets"),
    ("//a/⟪node()", f"node() is not supported: {STEPS}"),
    ("//a/⟪comment()", f"comment() is not supported: documents are read without them; {STEPS}"),
    ("//a[text(⟪x)]", "text() has nothing between its parentheses"),
    ("//a[⟪foo(b)]", "foo() is not a function of XPath 1.0"),
    (r"//a[re:test(b, ⟪'\bx', 'i')]", BAD_REGEX),
    (r"//a[re:test(b, ⟪'\btwo words\b', 'i')]", BAD_REGEX),
    (r"//a[re:test(b, ⟪'\bx\b')]", BAD_FLAGS),
    (r"//a[re:test(b, '\bx\b', ⟪'g')]", BAD_FLAGS),
    ("//⟪re:test", "the prefix re: is not declared: declare it for the set, or write Q{namespace}test"),
    (
        "//a[⟪string-length(b) > 3]",
        "string-length() is not supported: use contains(a, 'x') or starts-with(a, 'x')",
    ),
    ("//a[b = ⟪true()]", "true() is not supported: compare with the text 'true' or 'false', in quotes"),
    ("//⟪Q{u}*", "all names of a namespace are not supported: write *"),
    ("//⟪x:*", "the prefix x: is not declared: declare it for the set, or write Q{namespace}*"),
    ("//a[b ⟪&lt; 3]", "& is not part of the filter language: write and, and < in place of &lt;"),
    ("//a[.⟪[b]]", "brackets cannot stand behind . and ..: write self::node() or parent::node()"),
    ("//a[child::⟪@b]", "@b cannot stand behind an axis: leave the axis out"),
    ("//a ⟪(: c :)", "comments are not supported: leave them out"),
    ("⟪if (//a) then //b else //c", "if is not supported: a filter is a path with conditions and marks"),
    ("for ⟪$x in //a return $x", "$x is a variable, and filters have none: write the value"),
    ("some ⟪$x in //a satisfies $x = 3", "$x is a variable, and filters have none: write the value"),
    ("//a[b = ('x'⟪, 'y')]", "',' is not supported: compare with one value"),
    ("//a[(b⟪, c)]", "',' is not supported: join paths by and"),
    ("//a[b = ⟪--3]", f"- is not supported: {NUMBER}"),
    ("//a[b = ⟪+3]", f"+ is not supported: {NUMBER}"),
    ("//a[b=1.2⟪.3]", ".3 cannot stand here: expected ']' or and"),
    ("//a[⟪@]", "a name stands behind @, or *"),
    ("//a[b = 'it'⟪s']", "s cannot stand here: a quote within a text is doubled, as in 'it''s'"),
    ("//a[b][ ⟪] ", "the brackets are empty: write a condition, such as [b] or [. = 'x']"),
    (
        "//*[⟪local-name() = 'x']",
        "local-name() is not supported: write the name as a step, or *:name for any namespace",
    ),
    ("//a⟪!b", f"! is not supported: {ABSENT}"),
    (
        "//a[b ⟪instance of xs:string]",
        "instance is not supported: write numbers without quotes and texts in quotes",
    ),
    ("⟪true()", "true() is not supported: compare with the text 'true' or 'false', in quotes"),
    ("⟪3", "3 alone is not a condition: compare a path with it"),
    ("⟪'x'", "'x' alone is not a condition: compare a path with it"),
    ("//a[contains(., 'x'⟪] ", "']' cannot stand here: expected ')'"),
    ("//a[(b⟪]", "']' cannot stand here: expected ')' or and"),
    ("//a[(b and c) ⟪= 3]", "a condition is not compared: write it alone"),
    ("//a ⟪is //b", "is is not supported: nodes are not compared, only their values"),
    ("//a[b ⟪to c]", "to is not supported: write two comparisons, as in [a >= 1 and a <= 5]"),
    ("//⟪[b]", "a step needs a name before its brackets: write * for any"),
    ("//a[⟪“x” = b]", "a text stands in plain quotes ' or \""),
    ("//a->⟪b", "a filter begins at the document: write //b or /b"),
    ("//a⟪#b", "# is not part of the filter language: comments are not supported"),
    ('//a[⟪"', "a quote is still open"),
    ("⟪{id}", MARKED),
    ("//⟪{id}", MARKED),
    ("//a[⟪{id}]", MARKED),
    ("//a/b[c]/@d[⟪2]", f"[2] asks for a position, which is not supported: {POSITION}"),
    ("//a[b][last()⟪-1]", f"- is not supported: {NUMBER}"),
    ("//a[b and⟪]", "']' cannot stand here: expected a path or a condition"),
    ("⟪and", "a filter begins at the document: write //and or /and"),
    ("//a[⟪-b = 3]", f"- is not supported: {NUMBER}"),
    ("//a[b = ⟪-'x']", f"- is not supported: {NUMBER}"),
    ("//a[⟪..]", f".. is not supported: {UPWARDS}"),
    ("//a[⟪../b = 3]", f".. is not supported: {UPWARDS}"),
    ("//a[@x]⟪{cont}", "a mark stands right behind the name, before the brackets: a{id}[b]"),
    ("//a/⟪.//b", "'.' stands at the beginning of a path only: leave it out"),
    ("//a[b]/⟪", "the filter ends too early: expected a name, an attribute or text()"),
    ("//a[b = 'x'][c = ⟪]", "']' cannot stand here: expected a text in quotes or a number"),
    ("//a[⟪= 3]", "'=' cannot stand here: expected a path or a condition"),
    ("//a[b ⟪c]", "c cannot stand here: join conditions by and, steps by / or //"),
    ("//a[b⟪,c]", "',' is not supported: join paths by and"),
    ("//a[b ⟪= 3 = 4]", "one comparison at a time: join two by and, as in [a > 1 and a = 5]"),
    ("//a[⟪contains(b, 'x', 'y')]", f"contains() takes 2 arguments, not 3: {ARGUMENTS}"),
    ("//a[contains(b, ⟪", ARGUMENTS),
    ("//a[sum(⟪", "the filter ends too early: expected a path or a condition"),
    ("//a[⟪contains()]", f"contains() takes 2 arguments, not 0: {ARGUMENTS}"),
    ("//a[contains ⟪b]", "b cannot stand here: join conditions by and, steps by / or //"),
    ("//a[contains(⟪/b, 'x')]", "a path in brackets begins at the step before them: write b"),
    ("//a[⟪.. = 3]", f".. is not supported: {UPWARDS}"),
    ("//a/⟪self::node()", "self:: is not supported: give the step its name, or compare . in brackets"),
    ("//a/⟪namespace::x", "namespace:: is not supported: write Q{namespace}name"),
    ("//a[⟪preceding::b]", f"preceding:: is not supported: {SIBLINGS}"),
    ("//a[⟪empty(b)]", f"empty() is not a function of XPath 1.0: {ABSENT}"),
    ("//a[⟪exists(b)]", "exists() is not a function of XPath 1.0: write the path alone, as in [a]"),
    (
        "//a[⟪ends-with(b, 'x')]",
        "ends-with() is not a function of XPath 1.0: use contains(a, 'x') or starts-with(a, 'x')",
    ),
    (
        "//a[⟪matches(b, 'x')]",
        "matches() is not a function of XPath 1.0: use contains(a, 'x') or starts-with(a, 'x')",
    ),
    (
        "//a[⟪lower-case(b) = 'x']",
        "lower-case() is not a function of XPath 1.0: use contains(a, 'x') or starts-with(a, 'x')",
    ),
    ("//a[⟪string(b) = 'x']", "string() is not supported: compare the path itself, as in a = 'x'"),
    (
        "//a[⟪normalize-space(.) = 'x']",
        "normalize-space() is not supported: compare the path itself, as in a = 'x'",
    ),
    ("//a[⟪number(b) > 3]", "number() is not supported: compare the path itself, as in a = 'x'"),
    ("//a[⟪sum(b) > 3]", f"sum() is not supported: {NUMBER}"),
    ("//a[⟪id('x')]", "id() is not supported: write [@id = 'x']"),
    (
        "//a[⟪lang('en')]",
        "lang() is not supported: write [@xml:lang = 'en'], which looks at the node itself only",
    ),
    ("//a[⟪namespace-uri() = 'x']", "namespace-uri() is not supported: write Q{namespace}name"),
    ("⟪doc('x')//a", "doc() is not a function of XPath 1.0: a filter looks at one document only"),
    ("//a[b ⟪union c]", "union is not supported: write one path, or subscribe to each alternative"),
    ("//a ⟪except //b", "except is not supported: write one path, or subscribe to each alternative"),
    ("//a[b ⟪mod 2 = 0]", f"mod is not supported: {NUMBER}"),
    ("//a[b ⟪cast as xs:int = 3]", "cast is not supported: write numbers without quotes and texts in quotes"),
    ("//a[@x = 'a' ⟪|| 'b']", "|| is not supported: subscribe to each alternative"),
    ("//a[b]/text()/⟪..", f".. is not supported: {UPWARDS}"),
    (
        "//a/⟪processing-instruction()",
        f"processing-instruction() is not supported: documents are read without them; {STEPS}",
    ),
    ("//a/⟪element(b)", f"element() is not supported: {STEPS}"),
    ("//a[b ⟪ne 'x']", "ne is not supported: write !="),
    ("//a⟪?b", "? is not supported: filters have no optional parts"),
    ("//a⟪;b", "; is not part of the filter language"),
]
TREES = [
    ("//a[⟪val_{ID} = 3]", "val is the node's own value: a child of that name is /val"),
    ("//a[⟪.//c]", "'.' is not in the tree notation: leave it out"),
    ("//a[⟪. = 3]", "'.' is not in the tree notation: write val"),
    ("//a⟪{ID}", "a mark of the tree notation begins with an underscore: write _{ID}"),
    ("//a[⟪child::b]", "axes have no names in the tree notation: write / or //"),
    ("⟪a", "a filter begins at the document: write //a or /a"),
    ("//a[⟪..]", f".. is not supported: {UPWARDS}"),
    ("//a[⟪foo(b)]", "foo() is not supported: the functions are contains(), starts-with() and re:test()"),
    ("//a[⟪matches(b, 'x')]", "matches() is not supported: use contains(a, 'x') or starts-with(a, 'x')"),
    ("//⟪dc:title", "the prefix dc: is not declared: write Q{namespace}title, or *:title"),
    ("//a[b ⟪or c]", f"or is not supported: {EACH}"),
    ("//a/⟪parent::b", f"parent:: is not supported: {UPWARDS}"),
    ("//a_{ID}⟪_{val}", "a step has one mark: join them, as in a{id,val}"),
]


@pytest.mark.parametrize(
    ("marked", "reason", "dialect"),
    [
        *((marked, reason, "xpath") for marked, reason in XPATHS),
        *((marked, reason, "tree") for marked, reason in TREES),
    ],
)
def test_what_is_refused(marked: str, reason: str, dialect: str) -> None:
    before, _, behind = marked.partition("⟪")
    with pytest.raises(FilterError) as refused:
        parse_filter(before + behind, dialect)
    assert refused.value.reason == reason
    assert refused.value.position == len(before)


@pytest.mark.parametrize(
    ("text", "reason", "position"),
    [
        ("", "the filter is empty: write a path such as //news[company = 'ACME']", 0),
        (" \n", "the filter is empty: write a path such as //news[company = 'ACME']", 2),
        ("//a[b = '\x00']", "U+0000 is not a character of XML: no document has it", 9),
        ("//a[b = '\ud800']", "U+D800 is not a character of XML: no document has it", 9),
        ("//a\u00a0", "a no-break space stands here: write a plain one", 3),
        ("//a\u3000b", "\u3000 is not part of the filter language", 3),
        (f"//a[b = {'9' * 400}]", "the number is too large", 8),
        ("a" * 65_537, "the filter has 65,537 characters and at most 65,536 are taken", None),
        ("//a" * 257, "the filter has more than 256 steps", 3 * 256 + 2),
        ("//a" + "[. = 1]" * 65, "a step has more than 64 conditions on its value", 3 + 7 * 65 - 2),
        ("//a" + "[a" * 65, "the filter nests deeper than 64", 3 + 2 * 64),
        ("//a" + "[(a" * 33, "the filter nests deeper than 64", 3 + 3 * 32),
        ("/ " * 4_097, "the filter has 4,097 words and at most 4,096 are taken", 2 * 4_096),
    ],
)
def test_what_is_refused_by_its_size_or_characters(text: str, reason: str, position: int | None) -> None:
    with pytest.raises(FilterError) as refused:
        parse_filter(text)
    assert refused.value.reason == reason
    assert refused.value.position == position
    assert len(str(refused.value).splitlines()) == 1


def test_the_limits_are_those_of_the_messages() -> None:
    limits = (text_limits.MAX_NODES, text_limits.MAX_TESTS, text_limits.MAX_DEPTH, text_limits.MAX_WORDS)
    assert limits == (256, 64, 64, 4_096)


@pytest.mark.parametrize(
    ("filter_", "kind"), [(5, "int"), (None, "NoneType"), (b"//a", "bytes"), (["//a"], "list")]
)
def test_what_is_no_text(filter_: object, kind: str) -> None:
    with pytest.raises(FilterError, match=f"a filter is a text, not {kind}"):
        parse_filter(filter_)  # type: ignore[arg-type]  # a user may


def test_the_place_is_shown() -> None:
    with pytest.raises(FilterError) as refused:
        parse_filter("//news[company = 'ACME' or author]")
    assert str(refused.value) == (
        "or is not supported: subscribe to each alternative, as one filter asks for all of it, "
        "at character 25: …ws[company = 'ACME' ⟪or author]"
    )
