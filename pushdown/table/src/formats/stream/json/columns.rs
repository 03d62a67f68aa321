//! Builds columns row by row, with the inferred types. A value that its column cannot hold without loss is an error: arrow-json
//! would truncate fractions, parse numbers in strings, and use the last of two members with the same name.

use std::{collections::HashMap, sync::Arc};

use arrow_array::{
    ArrayRef, ListArray, StructArray,
    builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, UInt64Builder},
};
use arrow_buffer::{NullBufferBuilder, OffsetBufferBuilder};
use arrow_schema::{ArrowError, DataType, FieldRef, Fields};

use super::{
    super::number,
    row_error::RowError,
    tokens::{Tokens, Value},
};
use pushdown_core::language::excerpt;

/// A column under construction.
#[derive(Debug)]
enum JsonColumn {
    Boolean(BooleanBuilder),
    Int64(Int64Builder),
    UInt64(UInt64Builder),
    Float64(Float64Builder),
    Text(StringBuilder),
    List(Box<ListColumn>),
    Object(Box<ObjectColumn>),
}

#[derive(Debug)]
struct ListColumn {
    item: FieldRef,
    items: JsonColumn,
    offsets: OffsetBufferBuilder<i32>,
    nulls: NullBufferBuilder,
}

/// Objects with the same fields: one column per name.
#[derive(Debug)]
pub(super) struct ObjectColumn {
    fields: Fields,
    indexes: HashMap<String, usize>,
    columns: Vec<JsonColumn>,
    nulls: NullBufferBuilder,
    /// Whether an unknown name is an error.
    is_strict: bool,
}

impl JsonColumn {
    /// The recursion is bounded: the types are at most as deep as the rows that they were inferred from.
    fn new(data_type: &DataType) -> Self {
        match data_type {
            DataType::Boolean => Self::Boolean(BooleanBuilder::new()),
            DataType::Int64 => Self::Int64(Int64Builder::new()),
            DataType::UInt64 => Self::UInt64(UInt64Builder::new()),
            DataType::Float64 => Self::Float64(Float64Builder::new()),
            DataType::List(item) => Self::List(Box::new(ListColumn {
                item: FieldRef::clone(item),
                items: Self::new(item.data_type()),
                offsets: OffsetBufferBuilder::new(0),
                nulls: NullBufferBuilder::new(0),
            })),
            DataType::Struct(fields) => Self::Object(Box::new(ObjectColumn::new(fields.clone(), true))),
            _ => Self::Text(StringBuilder::new()),
        }
    }

    /// The expected values in errors.
    const fn describe(&self) -> &'static str {
        match self {
            Self::Boolean(_) => "true or false",
            Self::Int64(_) => "Int64",
            Self::UInt64(_) => "UInt64",
            Self::Float64(_) => "Float64",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }

    fn add(&mut self, value: &Value<'_>, tokens: &mut Tokens<'_>) -> Result<(), RowError> {
        let is_added = match (&mut *self, value) {
            (_, Value::Null) => {
                self.add_null();
                true
            }
            (Self::Boolean(column), Value::Bool(value)) => {
                column.append_value(*value);
                true
            }
            (Self::Text(column), Value::Text(value)) => {
                column.append_value(value);
                true
            }
            (Self::List(column), Value::List) => return column.add(tokens),
            (Self::Object(column), Value::Object) => return column.add(tokens),
            (column, Value::Number(text)) => column.add_number(text),
            _ => false,
        };
        if is_added {
            return Ok(());
        }
        Err(RowError::value(format!(
            "expected {} as in the first rows, found {}",
            self.describe(),
            value.describe()
        )))
    }

    /// Adds a number if the column can hold it. Returns whether it was added.
    fn add_number(&mut self, text: &str) -> bool {
        // A number with a fraction of zeros is a whole number.
        let whole = match text.split_once('.') {
            Some((whole, fraction)) if fraction.bytes().all(|byte| byte == b'0') => whole,
            _ => text,
        };
        let added = match self {
            Self::Int64(column) => number::parse_int(whole).map(|value| column.append_value(value)),
            Self::UInt64(column) => number::parse_uint(whole).map(|value| column.append_value(value)),
            Self::Float64(column) => number::parse_float(text).map(|value| column.append_value(value)),
            _ => None,
        };
        added.is_some()
    }

    fn add_null(&mut self) {
        match self {
            Self::Boolean(column) => column.append_null(),
            Self::Int64(column) => column.append_null(),
            Self::UInt64(column) => column.append_null(),
            Self::Float64(column) => column.append_null(),
            Self::Text(column) => column.append_null(),
            Self::List(column) => {
                column.offsets.push_length(0);
                column.nulls.append_null();
            }
            Self::Object(column) => {
                column.columns.iter_mut().for_each(Self::add_null);
                column.nulls.append_null();
            }
        }
    }

    fn len(&self) -> usize {
        use arrow_array::builder::ArrayBuilder as _;
        match self {
            Self::Boolean(column) => column.len(),
            Self::Int64(column) => column.len(),
            Self::UInt64(column) => column.len(),
            Self::Float64(column) => column.len(),
            Self::Text(column) => column.len(),
            Self::List(column) => column.nulls.len(),
            Self::Object(column) => column.nulls.len(),
        }
    }

    fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Boolean(column) => Arc::new(column.finish()),
            Self::Int64(column) => Arc::new(column.finish()),
            Self::UInt64(column) => Arc::new(column.finish()),
            Self::Float64(column) => Arc::new(column.finish()),
            Self::Text(column) => Arc::new(column.finish()),
            Self::List(column) => Arc::new(column.finish()?),
            Self::Object(column) => Arc::new(column.finish()?),
        })
    }
}

impl ListColumn {
    fn add(&mut self, tokens: &mut Tokens<'_>) -> Result<(), RowError> {
        let mut length = 0;
        while tokens.has_item(length == 0)? {
            let value = tokens.value()?;
            self.items.add(&value, tokens)?;
            length += 1;
        }
        self.offsets.push_length(length);
        self.nulls.append_non_null();
        Ok(())
    }

    fn finish(&mut self) -> Result<ListArray, ArrowError> {
        let offsets = std::mem::replace(&mut self.offsets, OffsetBufferBuilder::new(0));
        let items = self.items.finish()?;
        ListArray::try_new(
            FieldRef::clone(&self.item),
            offsets.finish(),
            items,
            self.nulls.finish(),
        )
    }
}

impl ObjectColumn {
    pub(super) fn new(fields: Fields, is_strict: bool) -> Self {
        let names = fields.iter().enumerate();
        Self {
            indexes: names
                .map(|(index, field)| (field.name().clone(), index))
                .collect(),
            columns: fields
                .iter()
                .map(|field| JsonColumn::new(field.data_type()))
                .collect(),
            fields,
            nulls: NullBufferBuilder::new(0),
            is_strict,
        }
    }

    /// Adds an object whose opening bracket has been read.
    pub(super) fn add(&mut self, tokens: &mut Tokens<'_>) -> Result<(), RowError> {
        let row = self.nulls.len();
        let (mut next, mut is_first) = (0, true);
        while let Some(name) = tokens.member(is_first)? {
            is_first = false;
            let value = tokens.value()?;
            let Some(index) = self.index(&name, next) else {
                if self.is_strict {
                    let name = excerpt(&name, 60);
                    return Err(RowError::syntax(format!(
                        "expected the names of the first rows, found `{name}`"
                    )));
                }
                tokens.skip(&value)?;
                continue;
            };
            let column = &mut self.columns[index];
            if column.len() > row {
                return Err(duplicate_name(&name));
            }
            column
                .add(&value, tokens)
                .map_err(|error| error.in_column(&name))?;
            next = index + 1;
        }
        for column in &mut self.columns {
            if column.len() == row {
                column.add_null();
            }
        }
        self.nulls.append_non_null();
        Ok(())
    }

    /// The index of the column of this name. `next` is tried first, since rows mostly have the same order of names.
    fn index(&self, name: &str, next: usize) -> Option<usize> {
        match self.fields.get(next) {
            Some(field) if field.name() == name => Some(next),
            _ => self.indexes.get(name).copied(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.nulls.len()
    }

    pub(super) fn finish(&mut self) -> Result<StructArray, ArrowError> {
        let length = self.nulls.len();
        let columns = self.columns.iter_mut().map(JsonColumn::finish);
        let columns = columns.collect::<Result<_, _>>()?;
        StructArray::try_new_with_length(self.fields.clone(), columns, self.nulls.finish(), length)
    }
}

pub(super) fn duplicate_name(name: &str) -> RowError {
    RowError::syntax(format!(
        "expected unique names in an object, found `{}` twice",
        excerpt(name, 60)
    ))
}
