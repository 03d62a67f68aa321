//! `substr` and `substring`, whose negative positions count from the end.

use std::sync::{Arc, LazyLock};

use arrow_array::{
    Array as _, ArrayRef, Int64Array, StringArray, builder::StringBuilder, cast::AsArray, types::Int64Type,
};
use arrow_schema::DataType;
use datafusion::{
    common::{ScalarValue, cast::as_string_array, plan_err},
    error::Result,
    logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility},
};

static FUNCTION: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(Substring::new())));

/// The function `substr`.
pub(super) fn function() -> Arc<ScalarUDF> {
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Substring {
    aliases: [String; 1],
    signature: Signature,
}

impl Substring {
    fn new() -> Self {
        Self {
            aliases: ["substring".to_owned()],
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for Substring {
    fn name(&self) -> &'static str {
        "substr"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let is_text = |data_type: &DataType| match data_type {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => true,
            DataType::Dictionary(_, values) => values.is_string(),
            _ => false,
        };
        let is_position = |data_type: &DataType| data_type.is_integer() || data_type.is_null();
        match types {
            [text, positions @ ..]
                if is_text(text) && matches!(positions.len(), 1 | 2) && positions.iter().all(is_position) =>
            {
                let mut coerced = vec![DataType::Utf8];
                coerced.resize(types.len(), DataType::Int64);
                Ok(coerced)
            }
            _ => {
                plan_err!("invalid arguments of substr: expected a text, a position and optionally a length")
            }
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = args
            .args
            .iter()
            .all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let (texts, starts) = (
            as_string_array(&arrays[0])?,
            arrays[1].as_primitive::<Int64Type>(),
        );
        let lengths = arrays.get(2).map(AsArray::as_primitive::<Int64Type>);
        let substrings = substrings(texts, starts, lengths);
        if is_scalar && substrings.len() == 1 {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(
                &substrings,
                0,
            )?));
        }
        Ok(ColumnarValue::Array(Arc::new(substrings) as ArrayRef))
    }
}

fn substrings(texts: &StringArray, starts: &Int64Array, lengths: Option<&Int64Array>) -> StringArray {
    let mut substrings = StringBuilder::with_capacity(texts.len(), 0);
    for row in 0..texts.len() {
        let is_length_null = lengths.is_some_and(|lengths| lengths.is_null(row));
        if texts.is_null(row) || starts.is_null(row) || is_length_null {
            substrings.append_null();
        } else {
            let length = lengths.map(|lengths| lengths.value(row));
            substrings.append_value(substring(texts.value(row), starts.value(row), length));
        }
    }
    substrings.finish()
}

/// `length` characters from position `start`. Positions count from 1, negative ones from the end; 0 is before the first
/// character. With a negative length, the characters before `start`.
fn substring(text: &str, start: i64, length: Option<i64>) -> &str {
    let slice = |from: i64, to: i64| {
        let skipped = usize::try_from(from.max(0)).unwrap_or(usize::MAX);
        let taken = usize::try_from(to.saturating_sub(from.max(0)).max(0)).unwrap_or(usize::MAX);
        let mut offsets = text.char_indices().map(|(offset, _)| offset);
        let first = offsets.clone().nth(skipped).unwrap_or(text.len());
        let end = offsets.nth(skipped.saturating_add(taken)).unwrap_or(text.len());
        &text[first..end]
    };
    let from = match start {
        0 if length.is_none() => 0,
        0.. => start - 1,
        _ => i64::try_from(text.chars().count())
            .unwrap_or(i64::MAX)
            .saturating_add(start),
    };
    match length {
        None => slice(from, i64::MAX),
        Some(length @ 0..) => slice(from, from.saturating_add(length)),
        Some(length) => slice(from.saturating_add(length), from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values of `DuckDB` 2.0.0.
    #[test]
    fn positions_count_from_either_end() {
        for (start, length, expected) in [
            (2, None, "ello"),
            (2, Some(3), "ell"),
            (0, None, "hello"),
            (0, Some(2), "h"),
            (0, Some(-1), ""),
            (-2, None, "lo"),
            (-2, Some(1), "l"),
            (-10, None, "hello"),
            (-10, Some(7), "he"),
            (2, Some(-1), "h"),
            (-2, Some(-2), "el"),
            (10, None, ""),
            (10, Some(-7), "llo"),
            (6, Some(-2), "lo"),
            (1, Some(0), ""),
            (7, Some(-3), "lo"),
            (i64::MIN, Some(i64::MIN), ""),
            (i64::MAX, Some(i64::MAX), ""),
        ] {
            assert_eq!(substring("hello", start, length), expected, "{start} {length:?}");
        }
        assert_eq!(substring("größe", -3, Some(2)), "öß");
        assert_eq!(substring("größe", 3, None), "öße");
    }
}
