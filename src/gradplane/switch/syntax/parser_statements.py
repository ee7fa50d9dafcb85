"""Statements, and the declarations among them (grammar: statementOrDeclaration); and tables: keys,
action lists, entries and other properties (grammar: tableDeclaration).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TypeVar

from gradplane.switch.source import Span
from gradplane.switch.syntax import ast
from gradplane.switch.syntax.parser_expressions import ExpressionParser
from gradplane.switch.syntax.parser_types import literal

ASSIGNMENTS = frozenset(
    {"=", "+=", "-=", "|+|=", "|-|=", "*=", "/=", "%=", "<<=", ">>=", "&=", "^=", "|="}
)
_TARGET_STARTS = frozenset({"name", ".", "this", "("})
_TARGETS = (ast.Name, ast.Member, ast.Index, ast.Slice)


class StatementParser(ExpressionParser):
    @abstractmethod
    def object_body(self) -> list[ast.Decl]:
        """Parse the `{ functions and instances }` of an instantiation with abstract methods."""

    # -- blocks ----------------------------------------------------------------------------------

    def block(self, annotations: list[ast.Annotation] | None = None) -> ast.Block:
        start = self.expect("{").span
        self.deeper()
        self.open_scope()
        body = self.items(self.statement)
        self.close_scope()
        self.depth -= 1
        self.expect("}")
        return ast.Block(body, annotations=annotations or [], span=start)

    def statement(self) -> ast.Stmt:
        """Parse a statement, or a declaration of a constant, variable or instance."""
        annotations = self.annotations()
        read = self._STATEMENTS.get(self.tok.kind)
        if read is not None and not annotations:
            return read(self)
        if self.tok.kind == "{":
            return self.block(annotations)
        if self.tok.kind == "for":
            return self._for(annotations)
        if self.tok.kind == "const":
            return self._declared(self.constant(annotations))
        if self.starts_declaration():
            return self._declaration_or_call(annotations)
        if annotations:
            self.fail("{", "for", "a declaration")
        result = self._simple_statement()
        self.expect(";")
        return result

    @staticmethod
    def _declared(decl: ast.Decl) -> ast.Stmt:
        return ast.DeclStmt(decl, span=decl.span)

    def starts_declaration(self) -> bool:
        """Return whether `T x`, `T<..> x` or `T(..) x` starts here, not an expression.

        `name name` can only be a declaration, so it counts as one even if the type is unknown.
        """
        if self.tok.kind == "name" and self.peek().kind == "name":
            return True
        return self.at_type() and self.peek(2 if self.tok.kind == "." else 1).kind != "."

    def _declaration_or_call(self, annotations: list[ast.Annotation]) -> ast.Stmt:
        start = self.tok.span
        ref = self.type_ref()
        if self.at("."):
            return self._direct_application(ref)
        return self._declared(self.typed_declaration(annotations, start, ref))

    def _direct_application(self, ref: ast.TypeRef) -> ast.Stmt:
        """Parse `C<T>.apply(...);` after the type."""
        self.advance()
        member = ast.Member(ast.TypeExpr(ref, span=ref.span), self.name().text, span=ref.span)
        args = self.arguments()
        call = ast.Call(member, [], args, span=self.span_from(ref.span))
        self.expect(";")
        return ast.CallStmt(call, span=call.span)

    # -- declarations of values ------------------------------------------------------------------

    def constant(self, annotations: list[ast.Annotation]) -> ast.ConstDecl:
        start = self.expect("const").span
        ref = self.type_ref()
        head = self.head(start, annotations)
        self.expect("=")
        value = self.expression()
        self.expect(";")
        return ast.ConstDecl(ref=ref, value=value, **head)

    def typed_declaration(
        self, annotations: list[ast.Annotation], start: Span, ref: ast.TypeRef
    ) -> ast.Decl:
        """Parse the rest of a variable or an instance whose type has been read."""
        if self.at("("):
            return self.instantiation(annotations, start, ref)
        variable = self._variable(annotations, start, ref)
        self.expect(";")
        return variable

    def _variable(
        self, annotations: list[ast.Annotation], start: Span, ref: ast.TypeRef
    ) -> ast.VarDecl:
        head = self.head(start, annotations)
        ref = self.declarator(ref)
        init = self.expression() if self.accept("=") else None
        return ast.VarDecl(ref=ref, init=init, **head)

    def instantiation(
        self, annotations: list[ast.Annotation], start: Span, ref: ast.TypeRef
    ) -> ast.Instantiation:
        args = self.arguments()
        head = self.head(start, annotations)
        body = self.object_body() if self.accept("=") else None
        self.expect(";")
        return ast.Instantiation(ref=ref, args=args, body=body, **head)

    # -- simple statements -----------------------------------------------------------------------

    def _simple_statement(self) -> ast.Stmt:
        """Parse an assignment or a call, without its ";"."""
        if self.tok.kind not in _TARGET_STARTS:
            self.fail("a statement")
        target = self.postfix()
        if self.tok.kind in ASSIGNMENTS:
            return self._assignment(target)
        if isinstance(target, ast.Call):
            return ast.CallStmt(target, span=target.span)
        self.fail("an assignment operator", "(", ".", "[")

    def _assignment(self, target: ast.Expr) -> ast.Stmt:
        if not isinstance(target, _TARGETS):
            hint = "only a variable, field, element or slice can be assigned to"
            self.fail_at(target.span, "this cannot be assigned to", hint)
        op = self.advance().kind
        value = self.expression()
        return ast.Assign(target, op, value, span=self.span_from(target.span))

    def _empty(self) -> ast.Stmt:
        return ast.Empty(span=self.advance().span)

    def _break(self) -> ast.Stmt:
        return ast.Break(span=self._keyword_alone())

    def _continue(self) -> ast.Stmt:
        return ast.Continue(span=self._keyword_alone())

    def _exit(self) -> ast.Stmt:
        return ast.Exit(span=self._keyword_alone())

    def _keyword_alone(self) -> Span:
        span = self.advance().span
        self.expect(";")
        return span

    def _return(self) -> ast.Stmt:
        start = self.advance().span
        value = None if self.at(";") else self.expression()
        span = self.span_from(start)
        self.expect(";")
        return ast.Return(value, span=span)

    # -- conditions ------------------------------------------------------------------------------

    def _if(self) -> ast.Stmt:
        """Parse an if with its chain of else-ifs in a loop: generated code has long chains."""
        first = last = self._if_then()
        links = 0
        while self.accept("else"):
            if self.tok.kind != "if":
                last.other = self._branch()
                break
            last.other = following = self._if_then()
            last = following
            self.chained(links := links + 1)
        return first

    def _if_then(self) -> ast.If:
        start = self.expect("if").span
        self.expect("(")
        cond = self.expression()
        self.expect(")")
        span = self.span_from(start)
        return ast.If(cond, self._branch(), span=span)

    def _branch(self) -> ast.Stmt:
        """Parse a statement under a condition or loop, where no declaration is allowed."""
        if self.tok.kind == "{":
            return self.block()
        self.deeper()
        result = self.statement()
        self.depth -= 1
        if isinstance(result, ast.DeclStmt):
            what = "a declaration cannot stand alone here"
            self.reporter.error(result.span, what, "put it in { }")
        return result

    def _switch(self) -> ast.Stmt:
        start = self.advance().span
        self.expect("(")
        subject = self.expression()
        self.expect(")")
        span = self.span_from(start)
        self.expect("{")
        cases = self.items(self._case)
        self.expect("}")
        return ast.SwitchStmt(subject, cases, span=span)

    def _case(self) -> ast.SwitchCase:
        label: ast.Expr
        if self.at("default"):
            label = ast.DefaultKey(span=self.advance().span)
        elif self.tok.kind == "{":
            self.fail("an expression without braces")
        else:
            label = self.expression()
        self.expect(":")
        if self.tok.kind not in ("{", "@"):
            return ast.SwitchCase(label, None, span=label.span)
        return ast.SwitchCase(label, self.block(self.annotations()), span=label.span)

    # -- loops -----------------------------------------------------------------------------------

    def _for(self, annotations: list[ast.Annotation]) -> ast.Stmt:
        start = self.advance().span
        self.expect("(")
        self.open_scope()
        if self.tok.kind == "name" and self.peek().kind == "in":
            what = f"the variable of a for-in loop needs its type: (T {self.tok.text} in ...)"
            self.fail_at(self.tok.span, what)
        loop = self._for_declared(start, annotations)
        self.close_scope()
        return loop

    def _for_declared(self, start: Span, annotations: list[ast.Annotation]) -> ast.Stmt:
        init = [] if self.at(";") else [self._for_part()]
        match init:
            case [ast.DeclStmt(decl=ast.VarDecl(init=None) as variable)] if self.at("in"):
                return self._for_in(start, variable, annotations)
        return self._for_classic(start, init, annotations)

    def _for_part(self) -> ast.Stmt:
        """Parse `T x`, `T x = e`, an assignment or a call."""
        annotations = self.annotations()
        start = self.tok.span
        if self.starts_declaration():
            return self._declared(self._variable(annotations, start, self.type_ref()))
        if annotations:
            self.fail("a type")
        return self._simple_statement()

    def _for_in(self, start: Span, var: ast.VarDecl, annotations: list[ast.Annotation]) -> ast.Stmt:
        self.expect("in")
        collection = self.expression()
        if self.accept(".."):
            high = self.expression()
            collection = ast.Range(collection, high, span=self.span_from(collection.span))
        self.expect(")")
        span = self.span_from(start)
        return ast.ForIn(var, collection, self._branch(), annotations=annotations, span=span)

    def _for_classic(
        self, start: Span, init: list[ast.Stmt], annotations: list[ast.Annotation]
    ) -> ast.Stmt:
        while init and self.accept(","):
            init.append(self._for_part())
        self.expect(";")
        cond = self.expression()
        self.expect(";")
        update = self.comma_list(self._simple_statement, ")")
        span = self.span_from(start)
        return ast.For(init, cond, update, self._branch(), annotations=annotations, span=span)

    _STATEMENTS: dict[str, Callable[[StatementParser], ast.Stmt]] = {
        ";": _empty,
        "break": _break,
        "continue": _continue,
        "exit": _exit,
        "return": _return,
        "if": _if,
        "switch": _switch,
    }


# -- tables -----------------------------------------------------------------------------------


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
                ast.TableProperty(name.text, value, const, annotations=annotations, span=span)
            )
        self.expect(";")

    def _key_element(self) -> ast.KeyElement:
        expr = self.expression()
        self.expect(":")
        kind = self.name().text
        span = self.span_from(expr.span)
        annotations = self.annotations()
        self.expect(";")
        return ast.KeyElement(expr, kind, annotations=annotations, span=span)

    def _listed_action(self) -> ast.ActionRef:
        action = self._action_ref(self.annotations())
        self.expect(";")
        return action

    def _action_ref(self, annotations: list[ast.Annotation]) -> ast.ActionRef:
        start = self.tok.span
        dot = self.accept(".") is not None
        name = self.name().text
        args = self.arguments() if self.at("(") else None
        return ast.ActionRef(name, args, dot, annotations=annotations, span=self.span_from(start))

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
        return ast.TableEntry(keyset, action, const, priority, annotations=annotations, span=span)

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
        action = ast.ActionRef(name.text, args, span=self.span_from(name.span))
        entry = ast.TableEntry(literal(first), action, span=self.span_from(first.span))
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
