//! The uses of the expression compiler: words of a line become programs, and faults are placed
//! below the words that contain them.

use super::Shared;
use super::line::{Cursor, Fault, Line, Parse};
use super::proxy::ProxyBuild;
use sample::vars::{SetConditions, Source};
use sample::{Acls, Assignment, Condition, Expr, LogFormat, Place, Style, VarRef};

impl Shared<'_> {
    /// Compiles word `index` as a log format.
    pub fn log_format(&mut self, line: &Line<'_>, index: usize, place: Place) -> Parse<LogFormat> {
        let result = self.compiler.log_format(line.bytes(index), place);
        self.warnings(line, index);
        result.map_err(|error| line.expr_fault(index, &error, &in_words(line)))
    }

    /// Compiles word `index` as a log format whose text is not for a header: bytes are not changed.
    pub fn plain_format(
        &mut self,
        line: &Line<'_>,
        index: usize,
        place: Place,
    ) -> Parse<LogFormat> {
        self.styled(line, index, line.bytes(index), place, Style::Plain)
    }

    /// Compiles `text`, from word `index`, as a log format with a given style.
    pub fn styled(
        &mut self,
        line: &Line<'_>,
        index: usize,
        text: &[u8],
        place: Place,
        style: Style,
    ) -> Parse<LogFormat> {
        let result = self.compiler.log_format_styled(text, place, style);
        self.warnings(line, index);
        result.map_err(|error| line.expr_fault(index, &error, &in_words(line)))
    }

    /// Compiles the expression at word `index`. Returns it and the index of the word after it.
    pub fn expr(&mut self, line: &Line<'_>, index: usize, place: Place) -> Parse<(Expr, usize)> {
        line.need(index, || {
            format!("{} : missing fetch method.", in_words(line))
        })?;
        let words = line.bytes_from(index);
        let result = self.compiler.expr(&words, place);
        self.warnings(line, index);
        let (expr, used) =
            result.map_err(|error| line.expr_fault(index, &error, &in_words(line)))?;
        Ok((expr, index + used))
    }

    /// Consumes the next expression.
    pub fn next_expr(&mut self, cursor: &mut Cursor<'_>, place: Place) -> Parse<Expr> {
        let (expr, next) = self.expr(&cursor.line, cursor.at, place)?;
        cursor.at = next;
        Ok(expr)
    }

    /// `set-var(<name>[,<condition>…]) <expression>`; its name was taken.
    pub fn set_var(&mut self, cursor: &mut Cursor<'_>, place: Place) -> Parse<Assignment> {
        let (var, when) = self.variable(&cursor.line, cursor.at - 1)?;
        let source = Source::Expr(self.next_expr(cursor, place)?);
        Ok(Assignment { var, when, source })
    }

    /// `set-var-fmt(<name>[,<condition>…]) <format>`; its name was taken.
    pub fn set_var_fmt(&mut self, cursor: &mut Cursor<'_>, place: Place) -> Parse<Assignment> {
        let (var, when) = self.variable(&cursor.line, cursor.at - 1)?;
        cursor.value("a format")?;
        let format = self.plain_format(&cursor.line, cursor.at - 1, place)?;
        Ok(Assignment {
            var,
            when,
            source: Source::Format(format),
        })
    }

    /// `unset-var(<name>)`, which was taken.
    pub fn unset_var(&mut self, cursor: &mut Cursor<'_>) -> Parse<Assignment> {
        let (var, when) = self.variable(&cursor.line, cursor.at - 1)?;
        Ok(Assignment {
            var,
            when,
            source: Source::Nothing,
        })
    }

    /// The variable and the conditions between the parentheses of word `index`, as in
    /// `set-var(txn.x,ifset)`.
    fn variable(&mut self, line: &Line<'_>, index: usize) -> Parse<(VarRef, SetConditions)> {
        const EXPECTED: &str =
            "Expects 'set-var(<var-name>)', 'set-var-fmt(<var-name>)' or 'unset-var(<var-name>)'";
        let word = line.arg(index);
        let fault = |message: String| line.fault(index, format!("{} : {message}.", in_words(line)));
        let Some((name, inside)) = word.split_once('(') else {
            return Err(fault(format!(
                "invalid or incomplete action '{word}'. {EXPECTED}"
            )));
        };
        let Some(inside) = inside.strip_suffix(')') else {
            return Err(fault(format!(
                "incomplete argument after action '{word}'. {EXPECTED}"
            )));
        };
        let mut parts = inside.split(',');
        let variable = parts.next().unwrap_or_default();
        let mut when = SetConditions::default();
        for condition in parts.filter(|condition| !condition.is_empty()) {
            if name == "unset-var" {
                return Err(fault(
                    "unset-var does not expect parameters after the variable name. Only \"set-var\" and \"set-var-fmt\" manage conditions"
                        .into(),
                ));
            }
            when.add(condition).map_err(fault)?;
        }
        let var = self
            .compiler
            .var(variable)
            .map_err(|error| fault(error.message))?;
        Ok((var, when))
    }

    /// A condition with these ACLs in the words from `index` on; None if there are no words.
    pub fn condition(
        &mut self,
        acls: &Acls,
        line: &Line<'_>,
        index: usize,
        place: Place,
    ) -> Parse<Option<Condition>> {
        let unless = match line.arg(index) {
            "" => return Ok(None),
            "if" => false,
            "unless" => true,
            word => {
                return Err(line.fault(
                    index,
                    format!(
                        "{} : expects 'if', 'unless' or end of line, got '{word}'.",
                        in_words(line)
                    ),
                ));
            }
        };
        line.need(index + 1, || {
            format!(
                "{} : missing condition after '{}'.",
                in_words(line),
                line.arg(index)
            )
        })?;
        let words = line.bytes_from(index + 1);
        let result = self.compiler.condition(acls, &words, unless, place);
        self.warnings(line, index + 1);
        result
            .map(Some)
            .map_err(|error| line.expr_fault(index + 1, &error, &in_words(line)))
    }

    /// Reports the compiler's warnings.
    pub fn warnings(&mut self, line: &Line<'_>, from: usize) {
        for warning in self.compiler.take_warnings() {
            let fault: Box<Fault> = line
                .expr_fault(from, &warning, &in_words(line))
                .as_warning();
            self.settle(Err(fault));
        }
    }
}

impl ProxyBuild<'_, '_> {
    /// A condition in the words from `index` on; None if there are no words.
    pub fn condition(
        &mut self,
        line: &Line<'_>,
        index: usize,
        place: Place,
    ) -> Parse<Option<Condition>> {
        let result = self.shared.condition(&self.acls, line, index, place);
        // The use of an ACL that could not be built has the fault of the ACL, which is reported
        // once.
        result.map_err(|fault| {
            let cause = |(name, _): &&(String, Box<Fault>)| {
                fault.message.contains(&format!("no such ACL : '{name}'"))
            };
            self.broken_acls
                .iter()
                .find(cause)
                .map_or_else(|| fault.clone(), |(_, fault)| fault.clone())
        })
    }
}

/// The beginning of a message about a rule.
pub fn in_words(line: &Line<'_>) -> String {
    if line.keyword() == "stats" {
        let rule = line.arg(1);
        return format!("error detected while parsing a 'stats {rule}' rule");
    }
    let words = match line.keyword() {
        "http-request" | "http-response" | "http-after-response" => 2,
        "tcp-request" | "tcp-response" => 3,
        _ => 1,
    };
    let rule = line
        .texts(0)
        .into_iter()
        .take(words)
        .collect::<Vec<_>>()
        .join(" ");
    format!("error detected while parsing '{rule}'")
}
