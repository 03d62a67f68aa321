//! Infers the columns of JSON lines from their values. Names keep the order of their first occurrence.

use std::{collections::HashMap, sync::Arc};

use arrow_schema::{DataType, Field, Fields};

use super::{
    super::number,
    columns::duplicate_name,
    row_error::RowError,
    tokens::{MAX_DEPTH, Tokens, Value, too_deep},
};

/// The type of the values of a name or of a list's items.
#[derive(Debug, Default)]
enum InferredType {
    #[default]
    Null,
    Bool,
    Number(NumberTypes),
    Text,
    List(Box<Self>),
    Object(InferredMembers),
}

/// Whether each type holds all numbers without loss.
#[derive(Debug, Clone, Copy)]
struct NumberTypes {
    int64: bool,
    uint64: bool,
    float64: bool,
}

/// The members of objects, in the order of their first occurrence.
#[derive(Debug, Default)]
struct InferredMembers {
    fields: Vec<(String, InferredType)>,
    indexes: HashMap<String, usize>,
    /// For each field, the number of the last object that has it.
    last_objects: Vec<u64>,
    /// Number of objects.
    objects: u64,
}

/// Number of names at all levels.
#[derive(Debug)]
struct NameCounter {
    count: usize,
    limit: usize,
}

/// Infers the columns of rows, one row at a time.
#[derive(Debug)]
pub(super) struct Inference {
    members: InferredMembers,
    names: NameCounter,
}

impl Inference {
    /// An inference that fails beyond `max_names` names.
    pub(super) fn new(max_names: usize) -> Self {
        Self {
            members: InferredMembers::default(),
            names: NameCounter {
                count: 0,
                limit: max_names,
            },
        }
    }

    /// Adds a row: an object whose opening bracket has been read.
    pub(super) fn add(&mut self, tokens: &mut Tokens<'_>) -> Result<(), RowError> {
        self.members.add(tokens, &mut self.names, 1)
    }

    /// Whether there are more names than the limit. Columns without a name (list items) do not count.
    pub(super) const fn is_over_limit(&self) -> bool {
        self.names.count > self.names.limit
    }

    pub(super) fn finish(self) -> Fields {
        self.members.into_fields()
    }
}

impl NumberTypes {
    fn from_text(text: &str) -> Self {
        Self {
            int64: number::parse_int(text).is_some(),
            uint64: number::parse_uint(text).is_some(),
            float64: number::parse_float(text).is_some(),
        }
    }

    const fn intersect(self, other: Self) -> Self {
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

impl InferredMembers {
    fn into_fields(self) -> Fields {
        let field =
            |(name, inferred): (String, InferredType)| Field::new(name, inferred.into_data_type(), true);
        self.fields.into_iter().map(field).collect()
    }

    /// Adds an object inside of `depth - 1` objects and lists.
    fn add(
        &mut self,
        tokens: &mut Tokens<'_>,
        names: &mut NameCounter,
        depth: usize,
    ) -> Result<(), RowError> {
        self.objects += 1;
        let (mut next, mut is_first) = (0, true);
        while let Some(name) = tokens.member(is_first)? {
            is_first = false;
            let index = if let Some(index) = self.index(&name, next) {
                index
            } else {
                names.count += 1;
                if names.count > names.limit {
                    return Err(RowError::syntax("too many names"));
                }
                self.insert(name.into_owned())
            };
            next = index + 1;
            let (name, inferred) = &mut self.fields[index];
            if std::mem::replace(&mut self.last_objects[index], self.objects) == self.objects {
                return Err(duplicate_name(name));
            }
            let value = tokens.value()?;
            inferred
                .add(&value, tokens, names, depth)
                .map_err(|error| error.in_column(name))?;
        }
        Ok(())
    }

    /// The index of the member of this name. `next` is tried first, since rows mostly have the same order of names.
    fn index(&self, name: &str, next: usize) -> Option<usize> {
        if self.fields.get(next).is_some_and(|(field, _)| field == name) {
            return Some(next);
        }
        self.indexes.get(name).copied()
    }

    /// Adds a member and returns its index.
    fn insert(&mut self, name: String) -> usize {
        let index = self.fields.len();
        self.indexes.insert(name.clone(), index);
        self.fields.push((name, InferredType::default()));
        self.last_objects.push(0);
        index
    }
}

impl InferredType {
    fn into_data_type(self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::Number(numbers) => numbers.data_type().unwrap_or(DataType::Utf8),
            Self::Null | Self::Text => DataType::Utf8,
            Self::List(item) => DataType::List(Arc::new(Field::new_list_field(item.into_data_type(), true))),
            Self::Object(members) => DataType::Struct(members.into_fields()),
        }
    }

    /// The type in errors.
    const fn describe(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "true or false",
            Self::Number(_) => "a number",
            Self::Text => "a string",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }

    fn from_value(value: &Value<'_>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Bool,
            Value::Number(text) => Self::Number(NumberTypes::from_text(text)),
            Value::Text(_) => Self::Text,
            Value::List => Self::List(Box::default()),
            Value::Object => Self::Object(InferredMembers::default()),
        }
    }

    /// Adds a value inside of `depth` lists and objects.
    fn add(
        &mut self,
        value: &Value<'_>,
        tokens: &mut Tokens<'_>,
        names: &mut NameCounter,
        depth: usize,
    ) -> Result<(), RowError> {
        if depth == MAX_DEPTH && matches!(value, Value::List | Value::Object) {
            return Err(too_deep());
        }
        let found = Self::from_value(value);
        match (&mut *self, found) {
            (_, Self::Null)
            | (Self::Bool, Self::Bool)
            | (Self::Text, Self::Text)
            | (Self::List(_), Self::List(_))
            | (Self::Object(_), Self::Object(_)) => {}
            (Self::Number(numbers), Self::Number(number)) => *numbers = numbers.intersect(number),
            (Self::Null, found) => *self = found,
            (inferred, found) => {
                return Err(RowError::value(format!(
                    "expected {} as in the rows before, found {}",
                    inferred.describe(),
                    found.describe()
                )));
            }
        }
        match self {
            Self::Number(numbers) if numbers.data_type().is_none() => Err(RowError::value(format!(
                "expected a number whose type (Int64, UInt64 or Float64) also holds the numbers before, found {}",
                value.describe()
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
