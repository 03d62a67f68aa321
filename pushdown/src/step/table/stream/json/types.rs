//! The types of JSON's values, by the values: names in the order in which they are first seen.

use std::{collections::HashMap, fmt, sync::Arc};

use arrow_schema::{DataType, Field, Fields};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::{Error, Result, pipeline::excerpt};

/// What values have been seen in a place.
#[derive(Debug, Default)]
enum Seen {
    #[default]
    Null,
    Bool,
    Int,
    Float,
    Text,
    List(Box<Seen>),
    Object(Members),
}

/// The members of objects in a place, in the order in which they are first seen.
#[derive(Debug, Default)]
struct Members {
    fields: Vec<(String, Seen)>,
    places: HashMap<String, usize>,
}

/// How many names have been found, in all places together.
#[derive(Debug)]
struct Names {
    found: usize,
    most: usize,
}

/// The columns of a text's objects, and how many objects there are. Where the text is `cut`, the last one may be, too.
///
/// # Errors
/// [`TooLarge`](crate::ErrorKind::TooLarge) once there are more than `most` names; columns without one are not counted.
pub(super) fn infer(text: &[u8], cut: bool, most: usize) -> Result<(Fields, usize)> {
    let mut seen = Seen::default();
    let mut names = Names { found: 0, most };
    let (mut rows, mut before, mut start) = (0, 0, 0);
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<&RawValue>();
    loop {
        let value = match values.next() {
            None => break,
            Some(Ok(value)) => value.get(),
            Some(Err(error)) if cut && error.is_eof() => break,
            Some(Err(error)) => return Err(malformed(&error, error.line())),
        };
        let end = values.byte_offset();
        let lines = |range| memchr::memchr_iter(b'\n', text.get(range).unwrap_or_default()).count();
        before += lines(start..end - value.len());
        let mut parser = serde_json::Deserializer::from_str(value);
        let place = Place {
            seen: &mut seen,
            names: &mut names,
        };
        let read = Row(place).deserialize(&mut parser);
        if names.found > most {
            return Err(Error::too_large(format!(
                "the object has more columns than the limit of {most}"
            )));
        }
        read.map_err(|error| malformed(&error, before + error.line()))?;
        before += lines(end - value.len()..end);
        start = end;
        rows += 1;
    }
    match seen {
        Seen::Object(members) => Ok((members.into_fields(), rows)),
        _ => Ok((Fields::empty(), rows)),
    }
}

/// An error in a line, whose own place is that in a row.
fn malformed(error: &serde_json::Error, line: usize) -> Error {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or_default();
    Error::undecodable(format!(
        "found malformed JSON in line {line}: {}",
        excerpt(what, 300)
    ))
}

impl Members {
    fn into_fields(self) -> Fields {
        let field = |(name, seen): (String, Seen)| Field::new(name, seen.into_type(), true);
        self.fields.into_iter().map(field).collect()
    }

    /// Where the member of this name is, if there is one. Names mostly come in the order of the row before: `next` is looked
    /// at first.
    fn place(&self, name: &str, next: usize) -> Option<usize> {
        if self.fields.get(next).is_some_and(|(field, _)| field == name) {
            return Some(next);
        }
        self.places.get(name).copied()
    }

    /// Adds a member; gives its place.
    fn add(&mut self, name: String) -> usize {
        let place = self.fields.len();
        self.places.insert(name.clone(), place);
        self.fields.push((name, Seen::default()));
        place
    }
}

impl Seen {
    fn into_type(self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::Int => DataType::Int64,
            Self::Float => DataType::Float64,
            Self::Null | Self::Text => DataType::Utf8,
            Self::List(item) => DataType::List(Arc::new(Field::new_list_field(item.into_type(), true))),
            Self::Object(members) => DataType::Struct(members.into_fields()),
        }
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "true or false",
            Self::Int | Self::Float => "a number",
            Self::Text => "a string",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }

    /// Takes one more value into account, whose inside comes later.
    fn also(&mut self, found: Self) -> Result<(), String> {
        let both = match (&*self, &found) {
            (Self::Null, _) => found,
            (Self::Int, Self::Float) => Self::Float,
            (Self::Bool, Self::Bool)
            | (Self::Int, Self::Int)
            | (Self::Float, Self::Int | Self::Float)
            | (Self::Text, Self::Text)
            | (Self::List(_), Self::List(_))
            | (Self::Object(_), Self::Object(_)) => return Ok(()),
            _ => {
                return Err(format!(
                    "found {}, expected {} as before",
                    found.name(),
                    self.name()
                ));
            }
        };
        *self = both;
        Ok(())
    }
}

/// A row, which has to be an object.
struct Row<'a>(Place<'a>);

impl<'de> DeserializeSeed<'de> for Row<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self.0)
    }
}

/// A value in its place.
struct Place<'a> {
    seen: &'a mut Seen,
    names: &'a mut Names,
}

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object in each line")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<(), E> {
        self.seen.also(Seen::Bool).map_err(E::custom)
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<(), E> {
        self.seen.also(Seen::Int).map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<(), E> {
        let fits = i64::try_from(number).is_ok();
        self.seen
            .also(if fits { Seen::Int } else { Seen::Float })
            .map_err(E::custom)
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<(), E> {
        self.seen.also(Seen::Float).map_err(E::custom)
    }

    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<(), E> {
        self.seen.also(Seen::Text).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self { seen, names } = self;
        seen.also(Seen::List(Box::default())).map_err(A::Error::custom)?;
        let Seen::List(item) = seen else {
            return Ok(());
        };
        loop {
            let place = Place {
                seen: item.as_mut(),
                names: &mut *names,
            };
            if items.next_element_seed(place)?.is_none() {
                return Ok(());
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let Self { seen, names } = self;
        seen.also(Seen::Object(Members::default()))
            .map_err(A::Error::custom)?;
        let Seen::Object(members) = seen else {
            return Ok(());
        };
        let mut next = 0;
        while let Some(name) = entries.next_key::<String>()? {
            let place = if let Some(place) = members.place(&name, next) {
                place
            } else {
                names.found += 1;
                if names.found > names.most {
                    return Err(A::Error::custom("too many names"));
                }
                members.add(name)
            };
            next = place + 1;
            let (name, seen) = &mut members.fields[place];
            let names = &mut *names;
            entries
                .next_value_seed(Place { seen, names })
                .map_err(|error| named(error, name))?;
        }
        Ok(())
    }
}

/// An error of this file with the name of the column; the parser's own have to stay what they are, since an early end is one
/// of them. The parser adds the place behind each, and reads it back from there.
fn named<E: serde::de::Error>(error: E, name: &str) -> E {
    let text = error.to_string();
    match text.split_once(" as before at line ") {
        Some((what, place)) => E::custom(format!(
            "{what} as before in `{}` at line {place}",
            excerpt(name, 60)
        )),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inferred(text: &str) -> Result<Vec<(String, DataType)>> {
        let (fields, _) = infer(text.as_bytes(), false, usize::MAX)?;
        let field = |field: &Arc<Field>| (field.name().clone(), field.data_type().clone());
        Ok(fields.iter().map(field).collect())
    }

    #[test]
    fn types_are_those_of_all_rows() {
        let found = inferred("{\"b\": 1, \"a\": null}\n{\"a\": [{\"x\": true}], \"b\": 1.5, \"c\": \"t\"}\n")
            .unwrap();
        let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["b", "a", "c"]);
        assert_eq!(found[0].1, DataType::Float64);
        let inner = Fields::from(vec![Field::new("x", DataType::Boolean, true)]);
        let item = Field::new_list_field(DataType::Struct(inner), true);
        assert_eq!(found[1].1, DataType::List(Arc::new(item)));
        assert_eq!(found[2].1, DataType::Utf8);
    }

    #[test]
    fn types_that_do_not_fit_are_told() {
        let error = inferred("{\"a\": {\"b\": 1}}\n{\"a\": {\"b\": \"x\"}}")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("found a string, expected a number as before in `b`"),
            "{error}"
        );
        assert!(error.contains("line 2"), "{error}");
        assert!(
            inferred("[1]")
                .unwrap_err()
                .to_string()
                .contains("an object in each line")
        );
        assert!(inferred("{\"a\": ").is_err());
        assert!(infer(b"{\"a\": 1}\n{\"a\": 1", true, 1).is_ok());
    }

    #[test]
    fn a_row_of_many_names_ends_at_the_limit() {
        let row = |names: &mut dyn Iterator<Item = u32>| {
            let members: Vec<_> = names.map(|name| format!("\"n{name}\": {name}")).collect();
            format!("{{{}}}\n", members.join(", "))
        };
        // The second row has the names of the first in another order: they are found, and not added.
        let text = [row(&mut (0..5000_u32)), row(&mut (0..5000_u32).rev())].concat();
        let (fields, rows) = infer(text.as_bytes(), false, 5000).unwrap();
        assert_eq!((fields.len(), rows), (5000, 2));
        assert_eq!(
            (fields[0].name().as_str(), fields[4999].name().as_str()),
            ("n0", "n4999")
        );
        for text in [text, format!("{{\"rows\": [{}]}}", row(&mut (0..4999_u32)))] {
            let error = infer(text.as_bytes(), false, 4999).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::TooLarge, "{error}");
        }
    }
}
