//! The fields of a table of the keys file. They are read one by one, so that one fault does not hide the others.

use std::fmt::Display;

use toml::{Table, Value};

/// The fields of a table. Each is taken once; those that are left are unknown. Faults show no values of other types than
/// expected: a secret may have been written as a number.
pub(super) struct Fields {
    table: Table,
    known: Vec<&'static str>,
    faults: Vec<String>,
}

impl Fields {
    pub(super) fn new(table: Table) -> Self {
        Self {
            table,
            known: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Whether a field that has not been taken yet is there.
    pub(super) fn has(&self, name: &str) -> bool {
        self.table.contains_key(name)
    }

    pub(super) fn fault(&mut self, fault: impl Display) {
        self.faults.push(fault.to_string());
    }

    /// Takes a string.
    pub(super) fn text(&mut self, name: &'static str) -> Option<String> {
        self.take(name, "a string", |value| match value {
            Value::String(text) => Ok(text),
            other => Err(other),
        })
    }

    /// Takes a string, and parses it.
    pub(super) fn parsed<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        match parse(&self.text(name)?) {
            Ok(value) => Some(value),
            Err(fault) => {
                self.fault(format_args!("{name}: {fault}"));
                None
            }
        }
    }

    /// Takes a string that must be there, and parses it.
    pub(super) fn required<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        if !self.has(name) {
            self.fault(format_args!("missing {name}"));
        }
        self.parsed(name, parse)
    }

    /// Takes a boolean.
    pub(super) fn flag(&mut self, name: &'static str) -> Option<bool> {
        self.take(name, "true or false", |value| match value {
            Value::Boolean(flag) => Ok(flag),
            other => Err(other),
        })
    }

    /// Takes an array of strings.
    pub(super) fn texts(&mut self, name: &'static str) -> Option<Vec<String>> {
        let values = self.array(name, "an array of strings")?;
        let mut texts = Vec::new();
        for value in values {
            match value {
                Value::String(text) => texts.push(text),
                other => {
                    self.fault(format_args!("{name}: expected strings, found {}", kind(&other)));
                    return None;
                }
            }
        }
        Some(texts)
    }

    /// Takes an array of tables.
    pub(super) fn tables(&mut self, name: &'static str) -> Option<Vec<Table>> {
        let values = self.array(name, "an array of tables")?;
        let mut tables = Vec::new();
        for value in values {
            match value {
                Value::Table(table) => tables.push(table),
                other => {
                    self.fault(format_args!("{name}: expected tables, found {}", kind(&other)));
                    return None;
                }
            }
        }
        Some(tables)
    }

    /// Adds the faults of these fields, and of those that are left, to `faults`. `place` says where the table is.
    pub(super) fn finish(mut self, place: &str, faults: &mut Vec<String>) {
        let mut unknown: Vec<String> = self.table.keys().cloned().collect();
        unknown.sort_unstable();
        let known = self.known.join(", ");
        for name in unknown {
            self.fault(format_args!("unknown field `{name}`: expected one of {known}"));
        }
        let placed = self.faults.into_iter().map(|fault| match place {
            "" => fault,
            place => format!("{place}: {fault}"),
        });
        faults.extend(placed);
    }

    fn array(&mut self, name: &'static str, expected: &str) -> Option<Vec<Value>> {
        self.take(name, expected, |value| match value {
            Value::Array(values) => Ok(values),
            other => Err(other),
        })
    }

    fn take<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        convert: impl FnOnce(Value) -> Result<T, Value>,
    ) -> Option<T> {
        self.known.push(name);
        match convert(self.table.remove(name)?) {
            Ok(value) => Some(value),
            Err(found) => {
                self.fault(format_args!(
                    "{name}: expected {expected}, found {}",
                    kind(&found)
                ));
                None
            }
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a string",
        Value::Integer(_) => "an integer",
        Value::Float(_) => "a float",
        Value::Boolean(_) => "a boolean",
        Value::Datetime(_) => "a date or time",
        Value::Array(_) => "an array",
        Value::Table(_) => "a table",
    }
}
