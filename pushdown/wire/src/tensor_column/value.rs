//! Reads values back from a column of arrays.

use arrow_array::{Array as _, ArrayRef, cast::AsArray as _, types::Int32Type};
use arrow_buffer::Buffer;
use bytes::Bytes;

use super::{ColumnType, Shape, TensorColumn, tensor};
use pushdown_core::{Error, Limits, Result, Sample};

impl TensorColumn {
    /// The value in row `row` of a column of this type; `None` for a null.
    ///
    /// # Errors
    /// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for a column of another type, and a shape that does not match the
    /// elements; [`TooLarge`](pushdown_core::ErrorKind::TooLarge) past a limit.
    pub fn value(&self, column: &ArrayRef, row: usize, limits: &Limits) -> Result<Option<Sample>> {
        if row >= column.len() {
            return Err(invalid());
        }
        if column.is_null(row) {
            return Ok(None);
        }
        let sample = match &self.0 {
            ColumnType::Bytes => {
                let bytes = column.as_binary_opt::<i32>().ok_or_else(invalid)?.value(row);
                Sample::Bytes(Bytes::copy_from_slice(bytes))
            }
            ColumnType::Fixed(shape) => {
                let elements = tensor::elements(column, shape, row)?;
                shape.clone().into_sample(elements, limits)?
            }
            ColumnType::Variable(shape, known) => {
                let (extents, elements) = variable(column, row).ok_or_else(invalid)?;
                let is_known =
                    |(known, found): (&Option<usize>, &usize)| known.is_none_or(|known| known == *found);
                if extents.len() != known.len() || !known.iter().zip(&extents).all(is_known) {
                    return Err(invalid());
                }
                let shape = Shape {
                    extents,
                    ..shape.clone()
                };
                shape.into_sample(elements, limits)?
            }
        };
        Ok(Some(sample))
    }
}

/// The extents and the elements of a row of a column of variable shapes; `None` for a column of another type.
fn variable(column: &ArrayRef, row: usize) -> Option<(Vec<usize>, Buffer)> {
    let [data, shapes] = column.as_struct_opt()?.columns() else {
        return None;
    };
    let extents = shapes.as_fixed_size_list_opt()?.value(row);
    let extents = extents.as_primitive_opt::<Int32Type>()?.values().iter();
    let extents = extents
        .map(|extent| usize::try_from(*extent).ok())
        .collect::<Option<_>>()?;
    let elements = data.as_list_opt::<i32>()?.value(row).to_data();
    let width = elements.data_type().primitive_width()?;
    let buffer = elements.buffers().first()?;
    let (start, bytes) = (elements.offset() * width, elements.len() * width);
    (start + bytes <= buffer.len()).then(|| (extents, buffer.slice_with_length(start, bytes)))
}

fn invalid() -> Error {
    Error::wire("the column does not have the type of its values")
}

#[cfg(test)]
mod tests {
    use arrow_buffer::Buffer;
    use pushdown_core::{DType, Image, ImageKind, Kind, Layout, Tensor, TensorKind};

    use super::*;

    fn image(width: u32, height: u32) -> Sample {
        let pixels = (0..width * height * 3).map(|pixel| u8::try_from(pixel % 251).unwrap());
        Sample::Image(Image::new(width, height, pixels.collect()).unwrap())
    }

    fn tensor(dtype: DType, shape: &[usize]) -> Sample {
        let bytes = shape.iter().product::<usize>() * dtype.size();
        let data: Vec<u8> = (0..bytes).map(|byte| u8::try_from(byte % 100).unwrap()).collect();
        Sample::Tensor(Tensor::new(dtype, Layout::Chw, shape.to_vec(), Buffer::from_vec(data)).unwrap())
    }

    fn tensors(dtype: DType, shape: Vec<Option<usize>>) -> Kind {
        Kind::Tensor(TensorKind {
            dtype,
            layout: Layout::Chw,
            shape,
            quantized: false,
        })
    }

    /// Values in a column are what they were, also in a part of the column.
    #[test]
    fn values_return_from_their_column() {
        let sides = |width, height| Kind::Image(ImageKind { width, height });
        let columns = [
            (
                sides(None, None),
                vec![Some(image(3, 2)), None, Some(image(1, 5)), Some(image(2, 2))],
            ),
            (sides(Some(3), None), vec![Some(image(3, 2)), Some(image(3, 4))]),
            (
                sides(Some(3), Some(2)),
                vec![None, Some(image(3, 2)), Some(image(3, 2))],
            ),
            (
                tensors(DType::F32, vec![Some(3), Some(2), Some(2)]),
                vec![Some(tensor(DType::F32, &[3, 2, 2])); 3],
            ),
            (
                tensors(DType::Bf16, vec![Some(3), None, None]),
                vec![
                    Some(tensor(DType::Bf16, &[3, 1, 2])),
                    Some(tensor(DType::Bf16, &[3, 4, 5])),
                ],
            ),
            (
                Kind::object(),
                vec![
                    Some(Sample::Bytes(Bytes::from_static(b"photo"))),
                    None,
                    Some(Sample::Bytes(Bytes::new())),
                ],
            ),
        ];
        for (kind, values) in columns {
            let column = TensorColumn::for_kind(&kind).unwrap();
            let elements =
                |value: &Option<Sample>| value.clone().map(|value| column.elements(value).unwrap());
            let array = column
                .array(&values.iter().map(elements).collect::<Vec<_>>())
                .unwrap();
            let limits = Limits::default();
            for start in 0..values.len() {
                let part = array.slice(start, values.len() - start);
                let found = (0..part.len()).map(|row| column.value(&part, row, &limits).unwrap());
                assert_eq!(found.collect::<Vec<_>>(), values[start..], "{kind}");
            }
            assert!(column.value(&array, values.len(), &limits).is_err());
        }
    }

    #[test]
    fn a_column_of_another_type_is_an_error() {
        let fixed = TensorColumn::for_kind(&tensors(DType::F32, vec![Some(2)])).unwrap();
        let variable = TensorColumn::for_kind(&tensors(DType::F32, vec![None])).unwrap();
        let bytes = TensorColumn::for_kind(&Kind::object()).unwrap();
        let value = fixed.elements(tensor(DType::F32, &[2])).unwrap();
        let array = fixed.array(&[Some(value)]).unwrap();
        for other in [variable, bytes] {
            assert!(other.value(&array, 0, &Limits::default()).is_err(), "{other:?}");
        }
    }
}
