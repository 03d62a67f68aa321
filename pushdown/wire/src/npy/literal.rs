//! The Python literal in an npy header: a dictionary of a string, a boolean and a tuple of integers.

use super::super::shape::MAX_AXES;
use pushdown_core::{Error, Result};

/// The contents of the literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Array<'a> {
    pub(super) descr: &'a str,
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<usize>,
}

/// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }` with keys in any order. Does not parse other Python
/// literals, such as those of structured dtypes.
pub(super) fn parse(text: &str) -> Result<Array<'_>> {
    let mut cursor = Cursor { text, rest: text };
    let (mut descr, mut fortran_order, mut shape) = (None, None, None);
    cursor.expect("{")?;
    while !cursor.take("}") {
        let key = cursor.string()?;
        cursor.expect(":")?;
        let repeated = match key {
            "descr" => descr.replace(cursor.string()?).is_some(),
            "fortran_order" => fortran_order.replace(cursor.boolean()?).is_some(),
            "shape" => shape.replace(cursor.tuple()?).is_some(),
            _ => return Err(cursor.fault("one of the keys descr, fortran_order and shape")),
        };
        if repeated {
            return Err(cursor.fault("no repeated key"));
        }
        if !cursor.take(",") {
            cursor.expect("}")?;
            break;
        }
    }
    if !cursor.rest.trim_ascii().is_empty() {
        return Err(cursor.fault("the end"));
    }
    match (descr, fortran_order, shape) {
        (Some(descr), Some(fortran_order), Some(shape)) => Ok(Array {
            descr,
            fortran_order,
            shape,
        }),
        _ => Err(Error::wire(
            "invalid npy header: expected descr, fortran_order and shape",
        )),
    }
}

struct Cursor<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    /// Skips white space and `token`, if `token` is next.
    fn take(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_ascii_start().strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, token: &'static str) -> Result<()> {
        if self.take(token) {
            Ok(())
        } else {
            Err(self.fault(token))
        }
    }

    fn string(&mut self) -> Result<&'a str> {
        let quote = if self.take("\"") {
            '"'
        } else {
            self.expect("'")?;
            '\''
        };
        let (string, rest) = self
            .rest
            .split_once(quote)
            .ok_or_else(|| self.fault("a closing quote"))?;
        self.rest = rest;
        Ok(string)
    }

    fn boolean(&mut self) -> Result<bool> {
        match (self.take("True"), self.take("False")) {
            (true, false) => Ok(true),
            (false, true) => Ok(false),
            _ => Err(self.fault("True or False")),
        }
    }

    fn tuple(&mut self) -> Result<Vec<usize>> {
        let mut extents = Vec::new();
        self.expect("(")?;
        while !self.take(")") {
            if extents.len() == MAX_AXES {
                return Err(self.fault("at most 32 axes"));
            }
            let rest = self.rest.trim_ascii_start();
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let extent = rest[..digits].parse().map_err(|_| self.fault("a whole number"))?;
            extents.push(extent);
            self.rest = &rest[digits..];
            // The suffix of long integers in Python 2.
            self.take("L");
            if !self.take(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(extents)
    }

    fn fault(&self, expected: &str) -> Error {
        let position = self.text.len() - self.rest.len();
        Error::wire(format!(
            "invalid npy header at {}: expected {expected}",
            position + 1
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_old_and_new_numpy_parse() {
        let expected = Array {
            descr: "<f4",
            fortran_order: false,
            shape: vec![3, 4],
        };
        for text in [
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }          \n",
            "{'descr':'<f4','fortran_order':False,'shape':(3,4)}",
            "{\"shape\": (3L, 4L,), \"fortran_order\": False, \"descr\": \"<f4\"}\n",
        ] {
            assert_eq!(parse(text).unwrap(), expected, "{text}");
        }
        assert_eq!(
            parse("{'descr': '|u1', 'fortran_order': True, 'shape': ()}")
                .unwrap()
                .shape,
            Vec::<usize>::new()
        );
    }

    #[test]
    fn other_literals_are_errors() {
        for text in [
            "",
            "{",
            "{}",
            "{'descr': '<f4', 'fortran_order': False}",
            "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}",
            "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}",
            "{'descr': '<f4', 'fortran_order': 0, 'shape': ()}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (1,}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} trailing",
            "{'descr': '<f4",
            "{'x': '<f4'}",
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(
                error.kind(),
                pushdown_core::ErrorKind::InvalidWire,
                "{text}: {error}"
            );
        }
        let deep = format!(
            "{{'descr': '<f4', 'fortran_order': False, 'shape': ({})}}",
            "1, ".repeat(100_000)
        );
        assert!(parse(&deep).unwrap_err().to_string().contains("at most 32 axes"));
    }
}
