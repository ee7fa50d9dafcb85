"""Declarations: types, externs, functions, parsers, controls (grammar: declaration)."""

from __future__ import annotations

from collections.abc import Callable

from gradplane.switch.source import Span
from gradplane.switch.syntax import ast
from gradplane.switch.syntax.lexer import Token
from gradplane.switch.syntax.parser_statements import TableParser
from gradplane.switch.syntax.parser_stream import STOP
from gradplane.switch.syntax.parser_types import Head

Annotations = list[ast.Annotation]
_END = frozenset({"end"})
_STATE_END = STOP | {"transition"}
_MEMBER_TYPES = frozenset({"error", "match_kind"})  # keywords that can also start a type
_TYPES = frozenset({"struct", "header", "header_union", "enum", "extern", "package"})
_NOT_IN_STATES = frozenset({"switch", "for", "return", "exit", "break", "continue"})


class DeclarationParser(TableParser):
    def program(self) -> ast.Program:
        """Parse all declarations. Broken ones have been reported and are left out."""
        start = self.tok.span
        groups = self.items(self._top_level, _END)
        return ast.Program([decl for group in groups for decl in group], span=start)

    def _top_level(self) -> list[ast.Decl]:
        """Parse one declaration; a typedef of a struct declared in place gives two, ";" none."""
        if self.accept(";"):
            return []
        annotations = self.annotations()
        if self.tok.kind == "typedef":
            return self._typedef(annotations)
        read = self._DECLARATIONS.get(self.tok.kind)
        if read is not None and not self._is_type_use():
            return [read(self, annotations)]
        if self._at_new_type():
            return [self._new_type(annotations)]
        if self.tok.kind == "name" or self.at_type():
            return [self._function_or_instance(annotations)]
        self.fail("a declaration")

    def _is_type_use(self) -> bool:
        """Return whether the keyword is a result type (`error f() {...}`), not a declaration."""
        return self.tok.kind in _MEMBER_TYPES and self.peek().kind != "{"

    def _at_new_type(self) -> bool:
        return self.tok.text == "type" and self.peek().kind not in ("(", "<")

    # -- struct-like types, enums ----------------------------------------------------------------

    def _struct(self, annotations: Annotations) -> ast.StructDecl:
        keyword = self.advance()
        head = self.head(keyword.span, annotations, is_type=True)
        self.open_scope()
        type_params = self.type_parameters()
        self.expect("{")
        fields = self.items(self._field)
        self.close_scope()
        self.expect("}")
        return ast.StructDecl(kind=keyword.kind, type_params=type_params, fields=fields, **head)

    def _field(self) -> ast.FieldDecl:
        annotations = self.annotations()
        start = self.tok.span
        ref = self.type_ref()
        name = self.name()
        ref = self.declarator(ref)
        self.expect(";")
        return ast.FieldDecl(
            name=name.text,
            ref=ref,
            annotations=annotations,
            name_span=name.span,
            span=self._joined(start, name.span),
        )

    def _enum(self, annotations: Annotations) -> ast.EnumDecl:
        start = self.advance().span
        plain = self.tok.kind == "name" and self.peek().kind == "{"
        underlying = None if plain else self.type_ref()
        head = self.head(start, annotations, is_type=True)
        self.expect("{")
        read = self._plain_member if plain else self._valued_member
        members = self.comma_list(read, "}", trailing=True, empty=False)
        return ast.EnumDecl(underlying=underlying, members=members, **head)

    def _plain_member(self) -> tuple[str, ast.Expr | None, Span]:
        name = self.name()
        return name.text, None, name.span

    def _valued_member(self) -> tuple[str, ast.Expr | None, Span]:
        name = self.name()
        self.expect("=")
        return name.text, self.expression(), name.span

    def _error(self, annotations: Annotations) -> ast.ErrorDecl:
        keyword, members = self._member_names(annotations)
        return ast.ErrorDecl("error", members, span=keyword.span)

    def _match_kind(self, annotations: Annotations) -> ast.MatchKindDecl:
        keyword, members = self._member_names(annotations)
        return ast.MatchKindDecl("match_kind", members, span=keyword.span)

    def _member_names(self, annotations: Annotations) -> tuple[Token, list[tuple[str, Span]]]:
        if annotations:
            what = f'a declaration of "{self.tok.kind}" takes no annotation'
            self.reporter.error(annotations[0].span, what)
        keyword = self.advance()
        self.expect("{")
        names = self.comma_list(self.name, "}", trailing=True, empty=False)
        return keyword, [(name.text, name.span) for name in names]

    # -- typedef and type ------------------------------------------------------------------------

    def _typedef(self, annotations: Annotations) -> list[ast.Decl]:
        start = self.advance().span
        found: list[ast.Decl] = []
        ref: ast.TypeRef
        if self.tok.kind in ("struct", "header", "header_union", "enum"):
            inner = self._DECLARATIONS[self.tok.kind](self, [])
            found.append(inner)
            ref = ast.NamedTypeRef(inner.name, span=inner.span)
        else:
            ref = self.type_ref()
        head = self.head(start, annotations, is_type=True)
        self.expect(";")
        return [*found, ast.TypedefDecl(ref=ref, **head)]

    def _new_type(self, annotations: Annotations) -> ast.TypedefDecl:
        start = self.advance().span
        ref = self.type_ref()
        head = self.head(start, annotations, is_type=True)
        self.expect(";")
        return ast.TypedefDecl(ref=ref, new=True, **head)

    # -- functions, externs, actions, instances --------------------------------------------------

    def _constant(self, annotations: Annotations) -> ast.ConstDecl:
        return self.constant(annotations)

    def _action(self, annotations: Annotations) -> ast.ActionDecl:
        start = self.advance().span
        head = self.head(start, annotations)
        self.open_scope()
        params = self.parameters()
        body = self.block()
        self.close_scope()
        return ast.ActionDecl(params=params, body=body, **head)

    def _function_or_instance(self, annotations: Annotations) -> ast.Decl:
        start = self.tok.span
        ref = self.type_ref()
        if self.at("("):
            return self.instantiation(annotations, start, ref)
        return self._function(annotations, start, ref)

    def _function(
        self, annotations: Annotations, start: Span, result: ast.TypeRef
    ) -> ast.FunctionDecl:
        function = self._prototype(annotations, start, result)
        function.body = self.block()
        self.close_scope()
        return function

    def _prototype(
        self, annotations: Annotations, start: Span, result: ast.TypeRef | None
    ) -> ast.FunctionDecl:
        """Parse `name<T>(params)` after the result type. The scope of the parameters stays open."""
        head = self.head(start, annotations, is_type=result is None)
        self.open_scope()
        type_params = self.type_parameters()
        params = self.parameters()
        return ast.FunctionDecl(result=result, type_params=type_params, params=params, **head)

    def _bodiless(
        self, annotations: Annotations, start: Span, result: ast.TypeRef | None
    ) -> ast.FunctionDecl:
        function = self._prototype(annotations, start, result)
        self.close_scope()
        self.expect(";")
        return function

    def object_body(self) -> list[ast.Decl]:
        self.expect("{")
        self.deeper()
        body = self.items(lambda: self._function_or_instance(self.annotations()))
        self.depth -= 1
        self.expect("}")
        return body

    def _extern(self, annotations: Annotations) -> ast.Decl:
        start = self.advance().span
        if self._extern_object_follows():
            return self._extern_object(annotations, start)
        return self._bodiless(annotations, start, self.type_ref())

    def _extern_object_follows(self) -> bool:
        """Return whether `name {` or `name<T> {` follows, not a function's result type."""
        if self.tok.kind != "name":
            return False
        after = self.index + 1
        if self.tokens[after].kind == "<":
            close = self.closing(after, "<", ">")
            after = len(self.tokens) - 1 if close is None else close + 1
        return self.tokens[after].kind == "{"

    def _extern_object(self, annotations: Annotations, start: Span) -> ast.ExternDecl:
        head = self.head(start, annotations, is_type=True)
        self.open_scope()
        type_params = self.type_parameters()
        self.expect("{")
        methods = self.items(lambda: self._method(head["name"]))
        self.close_scope()
        self.expect("}")
        return ast.ExternDecl(type_params=type_params, methods=methods, **head)

    def _method(self, extern: str) -> ast.FunctionDecl:
        annotations = self.annotations()
        start = self.tok.span
        abstract = self.accept("abstract") is not None
        constructor = self.tok.kind == "name" and self.peek().kind == "("
        if constructor and self.tok.text != extern:
            hint = f'a constructor is named "{extern}"; a method has a result type before its name'
            self.fail_at(self.tok.span, f'"{self.tok.text}" has no result type', hint)
        method = self._bodiless(annotations, start, None if constructor else self.type_ref())
        method.abstract = abstract
        return method

    # -- parsers, controls, packages -------------------------------------------------------------

    def _block_head(self, annotations: Annotations) -> tuple[Head, list[str], list[ast.Param]]:
        """Parse `keyword name<T>(params)`. The scope of the parameters stays open."""
        head = self.head(self.advance().span, annotations, is_type=True)
        self.open_scope()
        return head, self.type_parameters(), self.parameters()

    def _package(self, annotations: Annotations) -> ast.PackageTypeDecl:
        head, type_params, params = self._block_head(annotations)
        self.close_scope()
        self.expect(";")
        return ast.PackageTypeDecl(type_params=type_params, params=params, **head)

    def _parser(self, annotations: Annotations) -> ast.ParserTypeDecl | ast.ParserDecl:
        head, type_params, params = self._block_head(annotations)
        if self.accept(";"):
            self.close_scope()
            return ast.ParserTypeDecl(type_params=type_params, params=params, **head)
        parser = ast.ParserDecl(
            type_params=type_params,
            params=params,
            ctor_params=self._constructor_parameters(),
            locals=[],
            states=[],
            **head,
        )
        self._body_of(lambda: self._parser_element(parser), lambda: parser.states, "state")
        self.close_scope()
        return parser

    def _constructor_parameters(self) -> list[ast.Param]:
        params = self.parameters() if self.at("(") else []
        self.expect("{")
        return params

    def _parser_element(self, parser: ast.ParserDecl) -> None:
        annotations = self.annotations()
        if self.tok.text == "state":
            parser.states.append(self._state(annotations))
        elif parser.states:
            self.fail("state")
        elif self.tok.kind == "value_set":
            parser.locals.append(self._value_set(annotations))
        else:
            parser.locals.append(self._local(annotations, "state"))

    def _local(self, annotations: Annotations, *others: str) -> ast.Decl:
        """Parse a constant, variable or instance of a parser or control."""
        start = self.tok.span
        if self.tok.kind == "const":
            return self.constant(annotations)
        if self.tok.kind != "name" and not self.at_type():
            self.fail(*others, "a declaration")
        return self.typed_declaration(annotations, start, self.type_ref())

    def _value_set(self, annotations: Annotations) -> ast.ValueSetDecl:
        start = self.advance().span
        self.expect("<")
        ref = self.type_ref()
        self.expect(">")
        self.expect("(")
        size = self.expression()
        self.expect(")")
        head = self.head(start, annotations)
        self.expect(";")
        return ast.ValueSetDecl(ref=ref, size=size, **head)

    def _control(self, annotations: Annotations) -> ast.ControlTypeDecl | ast.ControlDecl:
        start = self.tok.span
        head, type_params, params = self._block_head(annotations)
        if self.accept(";"):
            self.close_scope()
            return ast.ControlTypeDecl(type_params=type_params, params=params, **head)
        ctor_params = self._constructor_parameters()
        found: list[ast.Decl] = []
        bodies: list[ast.Block] = []
        self._body_of(lambda: self._control_element(found, bodies), lambda: bodies, "apply")
        self.close_scope()
        return ast.ControlDecl(
            type_params=type_params,
            params=params,
            ctor_params=ctor_params,
            locals=found,
            body=bodies[0] if bodies else ast.Block([], span=start),
            **head,
        )

    def _body_of(self, parse: Callable[[], None], needed: Callable[[], object], what: str) -> None:
        """Parse the elements up to "}"; if they have no errors, `needed` must be present."""
        errors = len(self.reporter.diagnostics)
        self.items(parse)
        if not needed() and len(self.reporter.diagnostics) == errors and self.tok.kind in _TYPES:
            self._misplaced()
            self.items(parse)
        if not needed() and len(self.reporter.diagnostics) == errors:
            self.fail(what, "a declaration")
        self.expect("}")

    def _misplaced(self) -> None:
        """Report and skip a declaration that is only allowed at the top of the program."""
        what = f"{self.tok.kind} can only be declared at the top of the program"
        self.reporter.error(self.tok.span, what, "move it before this declaration")
        while self.tok.kind not in ("{", ";", "}", "end"):
            self.advance()
        end = self.closing(self.index, "{", "}") if self.tok.kind == "{" else self.index
        if end is not None and self.tok.kind != "}":
            while self.index <= end and self.tok.kind != "end":
                self.advance()

    def _control_element(self, found: list[ast.Decl], bodies: list[ast.Block]) -> None:
        if bodies:
            self.fail()
        annotations = self.annotations()
        if self.tok.text == "apply" and self.peek().kind == "{":
            self.advance()
            bodies.append(self.block(annotations))
        elif self.tok.kind == "action":
            found.append(self._action(annotations))
        elif self.tok.kind == "table":
            found.append(self.table(annotations))
        else:
            found.append(self._local(annotations, "apply", "action", "table"))

    # -- parser states ---------------------------------------------------------------------------

    def _state(self, annotations: Annotations) -> ast.ParserState:
        start = self.advance().span
        head = self.head(start, annotations)
        self.expect("{")
        self.open_scope()
        body = self.items(self._state_statement, _STATE_END)
        keyword = self.accept("transition")
        state = ast.ParserState(body=body, transition=None, **head)
        if keyword is not None:
            state.transition_span = keyword.span
            state.transition = self._transition()
        self.close_scope()
        self.expect("}")
        return state

    def _state_statement(self) -> ast.Stmt:
        self.tried.append("transition")
        if self.tok.kind in _NOT_IN_STATES:
            self.fail_at(self.tok.span, f'a parser state cannot contain "{self.tok.kind}"')
        return self.statement()

    def _transition(self) -> str | ast.Select:
        if self.at("select"):
            return self._select()
        name = self.name().text
        self.expect(";")
        return name

    def _select(self) -> ast.Select:
        start = self.advance().span
        self.expect("(")
        exprs = self.comma_list(self.expression, ")")
        span = self.span_from(start)
        self.expect("{")
        cases = self.items(self._select_case)
        self.expect("}")
        return ast.Select(exprs, cases, span=span)

    def _select_case(self) -> ast.SelectCase:
        keyset = self.keyset()
        self.expect(":")
        state = self.name()
        self.expect(";")
        return ast.SelectCase(keyset, state.text, span=self._joined(keyset.span, state.span))

    _DECLARATIONS: dict[str, Callable[[DeclarationParser, Annotations], ast.Decl]] = {
        "const": _constant,
        "extern": _extern,
        "action": _action,
        "parser": _parser,
        "control": _control,
        "package": _package,
        "struct": _struct,
        "header": _struct,
        "header_union": _struct,
        "enum": _enum,
        "error": _error,
        "match_kind": _match_kind,
    }
