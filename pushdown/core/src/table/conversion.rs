//! Converts columns to other types: nested ones field by field, and all others by a function.

use std::sync::Arc;

use arrow_array::{
    Array as _, ArrayRef, FixedSizeListArray, GenericListArray, MapArray, OffsetSizeTrait, StructArray,
    cast::AsArray as _, new_null_array,
};
use arrow_buffer::{ArrowNativeType as _, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields};

/// Converts an array to the type of a field. It is not called for equal types, and not for two nested types.
pub type LeafConversion<'a> = &'a dyn Fn(&ArrayRef, &Field) -> Result<ArrayRef, ArrowError>;

/// Converts a column to the type of `field`.
///
/// Fields of structs are found by name, and those that the column lacks are null. Lists of any kind become those of the field.
///
/// # Errors
/// Those of `leaf`; for lists that are too long for the field; for nulls of a field without them.
pub fn convert(array: &ArrayRef, field: &Field, leaf: LeafConversion<'_>) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == field.data_type() {
        return Ok(ArrayRef::clone(array));
    }
    match (array.data_type(), field.data_type()) {
        (DataType::Null, _) => Ok(new_null_array(field.data_type(), array.len())),
        (DataType::Struct(_), DataType::Struct(fields)) => {
            Ok(Arc::new(convert_struct(array.as_struct(), fields, leaf)?))
        }
        (DataType::FixedSizeList(..), DataType::FixedSizeList(item, length)) => {
            let values = convert(array.as_fixed_size_list().values(), item, leaf)?;
            let (item, nulls) = (FieldRef::clone(item), array.nulls().cloned());
            Ok(Arc::new(FixedSizeListArray::try_new(
                item, *length, values, nulls,
            )?))
        }
        (_, DataType::List(item)) => convert_list::<i32>(array, item, leaf),
        (_, DataType::LargeList(item)) => convert_list::<i64>(array, item, leaf),
        (DataType::Map(..), DataType::Map(entries, sorted)) => {
            let DataType::Struct(fields) = entries.data_type() else {
                return Err(unexpected(array, field.data_type()));
            };
            let map = array.as_map();
            Ok(Arc::new(MapArray::try_new(
                FieldRef::clone(entries),
                map.offsets().clone(),
                convert_struct(map.entries(), fields, leaf)?,
                array.nulls().cloned(),
                *sorted,
            )?))
        }
        _ => leaf(array, field),
    }
}

fn convert_struct(
    array: &StructArray,
    fields: &Fields,
    leaf: LeafConversion<'_>,
) -> Result<StructArray, ArrowError> {
    let columns = fields
        .iter()
        .map(|field| match array.column_by_name(field.name()) {
            Some(column) => convert(column, field, leaf),
            None => Ok(new_null_array(field.data_type(), array.len())),
        });
    let columns = columns.collect::<Result<_, _>>()?;
    StructArray::try_new_with_length(fields.clone(), columns, array.nulls().cloned(), array.len())
}

fn convert_list<Offset: OffsetSizeTrait>(
    array: &ArrayRef,
    item: &FieldRef,
    leaf: LeafConversion<'_>,
) -> Result<ArrayRef, ArrowError> {
    let (offsets, values): (Vec<usize>, _) = match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            (as_usizes(list.offsets()), list.values())
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            (as_usizes(list.offsets()), list.values())
        }
        DataType::FixedSizeList(_, length) => {
            let offsets = (0..=array.len()).map(|row| row * length.as_usize());
            (offsets.collect(), array.as_fixed_size_list().values())
        }
        _ => return Err(unexpected(array, &DataType::List(FieldRef::clone(item)))),
    };
    let too_long = || ArrowError::CastError("the lists have too many items".to_owned());
    let offsets = offsets.into_iter().map(Offset::from_usize);
    let offsets: ScalarBuffer<Offset> = offsets.collect::<Option<_>>().ok_or_else(too_long)?;
    Ok(Arc::new(GenericListArray::try_new(
        FieldRef::clone(item),
        OffsetBuffer::new(offsets),
        convert(values, item, leaf)?,
        array.nulls().cloned(),
    )?))
}

fn as_usizes<Offset: OffsetSizeTrait>(offsets: &[Offset]) -> Vec<usize> {
    offsets.iter().map(|offset| offset.as_usize()).collect()
}

fn unexpected(array: &ArrayRef, expected: &DataType) -> ArrowError {
    ArrowError::CastError(format!(
        "expected a column of {expected}, found {}",
        array.data_type()
    ))
}

#[cfg(test)]
mod tests {
    use arrow_array::{
        Int32Array, Int64Array, LargeListArray, ListArray, StringArray,
        types::{Int32Type, Int64Type},
    };

    use super::*;

    fn widen(array: &ArrayRef, field: &Field) -> Result<ArrayRef, ArrowError> {
        match (array.as_primitive_opt::<Int32Type>(), field.data_type()) {
            (Some(numbers), DataType::Int64) => {
                let numbers = numbers.iter().map(|number| number.map(i64::from));
                Ok(Arc::new(numbers.collect::<Int64Array>()))
            }
            _ => Err(unexpected(array, field.data_type())),
        }
    }

    fn to(array: &ArrayRef, data_type: DataType) -> Result<ArrayRef, ArrowError> {
        convert(array, &Field::new("c", data_type, true), &widen)
    }

    fn long() -> FieldRef {
        Arc::new(Field::new("element", DataType::Int64, true))
    }

    const LISTS: [Option<[Option<i32>; 2]>; 3] = [Some([Some(1), None]), None, Some([Some(3), Some(4)])];

    #[test]
    fn lists_of_any_kind_become_those_of_the_field() {
        let fixed = FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(LISTS, 2);
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>(LISTS);
        let large = LargeListArray::from_iter_primitive::<Int32Type, _, _>(LISTS);
        let kinds: [ArrayRef; 3] = [Arc::new(fixed), Arc::new(list), Arc::new(large)];
        let expected = LISTS.map(|list| list.map(|list| list.map(|item| item.map(i64::from)).to_vec()));
        for array in kinds {
            for data_type in [DataType::List(long()), DataType::LargeList(long())] {
                // Also of a part of the rows.
                for start in [0, 1] {
                    let found = to(&array.slice(start, 3 - start), data_type.clone()).unwrap();
                    assert_eq!(found.data_type(), &data_type);
                    let items = |row: usize| match data_type {
                        DataType::List(_) => found.as_list::<i32>().value(row),
                        _ => found.as_list::<i64>().value(row),
                    };
                    let list = |row: usize| {
                        let items = || items(row).as_primitive::<Int64Type>().iter().collect();
                        found.is_valid(row).then(items)
                    };
                    let lists: Vec<Option<Vec<_>>> = (0..found.len()).map(list).collect();
                    assert_eq!(lists, expected[start..], "{data_type} of {}", array.data_type());
                }
            }
        }
        let nulls = to(&new_null_array(&DataType::Null, 2), DataType::List(long())).unwrap();
        assert_eq!((nulls.len(), nulls.null_count()), (2, 2));
    }

    #[test]
    fn fields_of_structs_are_found_by_name() {
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
        let words: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
        let array = StructArray::from(vec![
            (Arc::new(Field::new("n", DataType::Int32, false)), numbers),
            (Arc::new(Field::new("w", DataType::Utf8, false)), words),
        ]);
        let field = |name: &str, data_type| Field::new(name, data_type, true);
        let fields = vec![
            field("w", DataType::Utf8),
            field("path", DataType::Utf8),
            field("n", DataType::Int64),
        ];
        let array: ArrayRef = Arc::new(array);
        let found = to(&array, DataType::Struct(fields.into())).unwrap();
        let found = found.as_struct();
        assert_eq!(found.column(0).as_string::<i32>().value(1), "b");
        assert_eq!(found.column(1).null_count(), 2);
        assert_eq!(found.column(2).as_primitive::<Int64Type>().values(), &[1, 2]);
        let other = DataType::Struct(vec![field("w", DataType::Int64)].into());
        assert!(to(&array, other).is_err());
    }
}
