//! The types of JSON's values, by the values: names in the order in which they are first seen.

use std::{collections::HashMap, sync::Arc};

use arrow_schema::{DataType, Field, Fields};

use super::{
    super::number,
    columns::twice,
    fault::Fault,
    tokens::{MAX_DEPTH, Tokens, Value, too_deep},
};

/// What values have been seen in a place.
#[derive(Debug, Default)]
enum Seen {
    #[default]
    Null,
    Bool,
    Number(Numbers),
    Text,
    List(Box<Self>),
    Object(Members),
}

/// The types that hold all numbers of a place without loss.
#[derive(Debug, Clone, Copy)]
struct Numbers {
    int64: bool,
    uint64: bool,
    float64: bool,
}

/// The members of objects in a place, in the order in which they are first seen.
#[derive(Debug, Default)]
struct Members {
    fields: Vec<(String, Seen)>,
    places: HashMap<String, usize>,
    /// For each field, the number of the object that it was last seen in.
    last: Vec<u64>,
    objects: u64,
}

/// How many names have been found, in all places together.
#[derive(Debug)]
struct Names {
    found: usize,
    most: usize,
}

/// Learns the columns of objects from one after the other.
#[derive(Debug)]
pub(super) struct Inference {
    members: Members,
    names: Names,
}

impl Inference {
    /// Learns at most `most` names.
    pub(super) fn new(most: usize) -> Self {
        Self {
            members: Members::default(),
            names: Names { found: 0, most },
        }
    }

    /// Looks at a row, an object whose opening bracket has been read.
    pub(super) fn add(&mut self, tokens: &mut Tokens<'_>) -> Result<(), Fault> {
        self.members.add(tokens, &mut self.names, 1)
    }

    /// Whether there are more names than the limit; columns without one are not counted.
    pub(super) const fn is_full(&self) -> bool {
        self.names.found > self.names.most
    }

    pub(super) fn finish(self) -> Fields {
        self.members.into_fields()
    }
}

impl Numbers {
    fn of(text: &str) -> Self {
        Self {
            int64: number::int(text).is_some(),
            uint64: number::uint(text).is_some(),
            float64: number::float(text).is_some(),
        }
    }

    const fn and(self, other: Self) -> Self {
        Self {
            int64: self.int64 && other.int64,
            uint64: self.uint64 && other.uint64,
            float64: self.float64 && other.float64,
        }
    }

    const fn data_type(self) -> Option<DataType> {
        match self {
            Self { int64: true, .. } => Some(DataType::Int64),
            Self { uint64: true, .. } => Some(DataType::UInt64),
            Self { float64: true, .. } => Some(DataType::Float64),
            _ => None,
        }
    }
}

impl Members {
    fn into_fields(self) -> Fields {
        let field = |(name, seen): (String, Seen)| Field::new(name, seen.into_type(), true);
        self.fields.into_iter().map(field).collect()
    }

    /// Looks at an object that stands inside of `depth - 1` others, and lists.
    fn add(&mut self, tokens: &mut Tokens<'_>, names: &mut Names, depth: usize) -> Result<(), Fault> {
        self.objects += 1;
        let (mut next, mut is_first) = (0, true);
        while let Some(name) = tokens.member(is_first)? {
            is_first = false;
            let place = if let Some(place) = self.place(&name, next) {
                place
            } else {
                names.found += 1;
                if names.found > names.most {
                    return Err(Fault::syntax("too many names"));
                }
                self.insert(name.into_owned())
            };
            next = place + 1;
            let (name, seen) = &mut self.fields[place];
            if std::mem::replace(&mut self.last[place], self.objects) == self.objects {
                return Err(twice(name));
            }
            let value = tokens.value()?;
            seen.add(&value, tokens, names, depth)
                .map_err(|fault| fault.under(name))?;
        }
        Ok(())
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
    fn insert(&mut self, name: String) -> usize {
        let place = self.fields.len();
        self.places.insert(name.clone(), place);
        self.fields.push((name, Seen::default()));
        self.last.push(0);
        place
    }
}

impl Seen {
    fn into_type(self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::Number(numbers) => numbers.data_type().unwrap_or(DataType::Utf8),
            Self::Null | Self::Text => DataType::Utf8,
            Self::List(item) => DataType::List(Arc::new(Field::new_list_field(item.into_type(), true))),
            Self::Object(members) => DataType::Struct(members.into_fields()),
        }
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "true or false",
            Self::Number(_) => "a number",
            Self::Text => "a string",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }

    fn of(value: &Value<'_>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Bool,
            Value::Number(text) => Self::Number(Numbers::of(text)),
            Value::Text(_) => Self::Text,
            Value::List => Self::List(Box::default()),
            Value::Object => Self::Object(Members::default()),
        }
    }

    /// Takes one more value into account, which stands inside of `depth` lists and objects.
    fn add(
        &mut self,
        value: &Value<'_>,
        tokens: &mut Tokens<'_>,
        names: &mut Names,
        depth: usize,
    ) -> Result<(), Fault> {
        if depth == MAX_DEPTH && matches!(value, Value::List | Value::Object) {
            return Err(too_deep());
        }
        let found = Self::of(value);
        match (&mut *self, found) {
            (_, Self::Null)
            | (Self::Bool, Self::Bool)
            | (Self::Text, Self::Text)
            | (Self::List(_), Self::List(_))
            | (Self::Object(_), Self::Object(_)) => {}
            (Self::Number(before), Self::Number(number)) => *before = before.and(number),
            (Self::Null, found) => *self = found,
            (before, found) => {
                return Err(Fault::value(format!(
                    "found {}, expected {} as before",
                    found.name(),
                    before.name()
                )));
            }
        }
        match self {
            Self::Number(numbers) if numbers.data_type().is_none() => Err(Fault::value(format!(
                "found {}, expected a number of a type, Int64, UInt64 or Float64, that holds those before as well",
                value.name()
            ))),
            Self::List(item) if *value == Value::List => {
                let mut is_first = true;
                while tokens.has_item(is_first)? {
                    is_first = false;
                    let value = tokens.value()?;
                    item.add(&value, tokens, names, depth + 1)?;
                }
                Ok(())
            }
            Self::Object(members) if *value == Value::Object => members.add(tokens, names, depth + 1),
            _ => Ok(()),
        }
    }
}
