"""Tables: keys, action lists, entries and other properties (grammar: tableDeclaration)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from gradplane.switch.syntax import ast
from gradplane.switch.syntax.parser_statements import StatementParser
from gradplane.switch.syntax.parser_types import literal

T = TypeVar("T")


class TableParser(StatementParser):
    def table(self, annotations: list[ast.Annotation]) -> ast.TableDecl:
        start = self.expect("table").span
        table = ast.TableDecl(
            key=[],
            actions=[],
            lists_actions=False,
            entries=[],
            const_entries=False,
            properties=[],
            **self.head(start, annotations),
        )
        self.expect("{")
        seen: set[str] = set()
        self.items(lambda: self._property(table, seen))
        self.expect("}")
        return table

    def _property(self, table: ast.TableDecl, seen: set[str]) -> None:
        """Parse one property and store it in `table`."""
        annotations = self.annotations()
        const = self.accept("const") is not None
        if self.tok.kind == "name" and self.tok.text in seen:
            self.reporter.error(self.tok.span, f"property {self.tok.text} is given twice")
        seen.add(self.tok.text)
        if (annotations or const) and self.tok.text in ("key", "actions"):
            self.fail_at(self.tok.span, f'"{self.tok.text}" takes no annotation and no "const"')
        if self.accept_word("key"):
            table.key += self._braced_list(self._key_element)
        elif self.accept_word("actions"):
            table.lists_actions = True
            table.actions += self._braced_list(self._listed_action)
        elif self.accept_word("entries"):
            table.const_entries |= const
            table.entries_annotations = annotations
            table.entries += self._braced_list(self._entry)
        else:
            self._named_property(table, annotations, const)

    def _braced_list(self, parse: Callable[[], T]) -> list[T]:
        self.expect("=")
        self.expect("{")
        found = self.items(parse)
        self.expect("}")
        return found

    def _named_property(
        self, table: ast.TableDecl, annotations: list[ast.Annotation], const: bool
    ) -> None:
        if self.tok.kind != "name":
            self.fail("a property")
        name = self.advance()
        self.expect("=")
        if name.text == "default_action":
            table.default_action = self._action_ref(annotations)
            table.const_default = const
        elif name.text == "psa_empty_group_action":
            table.empty_group_action = self._action_ref(annotations)
        else:
            value = self.expression()
            span = self.span_from(name.span)
            table.properties.append(
                ast.TableProperty(name.text, value, const, annotations, span=span)
            )
        self.expect(";")

    def _key_element(self) -> ast.KeyElement:
        expr = self.expression()
        self.expect(":")
        kind = self.name().text
        span = self.span_from(expr.span)
        annotations = self.annotations()
        self.expect(";")
        return ast.KeyElement(expr, kind, annotations, span=span)

    def _listed_action(self) -> ast.ActionRef:
        action = self._action_ref(self.annotations())
        self.expect(";")
        return action

    def _action_ref(self, annotations: list[ast.Annotation]) -> ast.ActionRef:
        start = self.tok.span
        dot = self.accept(".") is not None
        name = self.name().text
        args = self.arguments() if self.at("(") else None
        return ast.ActionRef(name, args, annotations, dot, span=self.span_from(start))

    def _entry(self) -> ast.TableEntry:
        if self.tok.kind == "integer":
            plain = self._plain_entry()
            if plain is not None:
                return plain
        const = self.accept("const") is not None
        priority = self._priority()
        keyset = self.keyset()
        self.expect(":")
        action = self._action_ref([])
        annotations = self.annotations()
        span = self.span_from(keyset.span)
        self.expect(";")
        return ast.TableEntry(keyset, action, annotations, const, priority, span=span)

    def _plain_entry(self) -> ast.TableEntry | None:
        """Parse `1 : action(2, 3);`, the form of most entries in large tables, at once.

        None, and nothing taken, if it has another form.
        """
        tokens, start = self.tokens, self.index
        ahead = tokens[start + 1 : start + 4]
        if [token.kind for token in ahead] != [":", "name", "("]:
            return None
        args: list[ast.Argument] = []
        at = start + 4
        while tokens[at].kind == "integer":
            token = tokens[at]
            args.append(ast.Argument(literal(token), span=token.span))
            at += 1
            if tokens[at].kind != ",":
                break
            at += 1
        if tokens[at].kind != ")" or tokens[at - 1].kind == "," or tokens[at + 1].kind != ";":
            return None
        first, name = tokens[start], ahead[1]
        self.move_to(at + 1)
        action = ast.ActionRef(name.text, args, [], span=self.span_from(name.span))
        entry = ast.TableEntry(literal(first), action, [], span=self.span_from(first.span))
        entry.plain = True
        self.advance()
        return entry

    def _priority(self) -> ast.Expr | None:
        """Parse `priority = 10 :` or `priority = (expression) :`."""
        if not (self.tok.text == "priority" and self.peek().kind == "="):
            return None
        self.advance()
        self.advance()
        if self.accept("("):
            value = self.expression()
            self.expect(")")
        else:
            value = self.integer()
        self.expect(":")
        return value
