//! `substr` and `substring`, whose positions count from the end where they are negative.

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

/// The function.
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
        let is_text = |found: &DataType| match found {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => true,
            DataType::Dictionary(_, values) => values.is_string(),
            _ => false,
        };
        let is_place = |found: &DataType| found.is_integer() || found.is_null();
        match types {
            [text, places @ ..]
                if is_text(text) && matches!(places.len(), 1 | 2) && places.iter().all(is_place) =>
            {
                let mut coerced = vec![DataType::Utf8];
                coerced.resize(types.len(), DataType::Int64);
                Ok(coerced)
            }
            _ => plan_err!("substr takes a text, a position, and a length if there is one"),
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
        let parts = parts(texts, starts, lengths);
        if is_scalar && parts.len() == 1 {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&parts, 0)?));
        }
        Ok(ColumnarValue::Array(Arc::new(parts) as ArrayRef))
    }
}

fn parts(texts: &StringArray, starts: &Int64Array, lengths: Option<&Int64Array>) -> StringArray {
    let mut parts = StringBuilder::with_capacity(texts.len(), 0);
    for row in 0..texts.len() {
        let missing = lengths.is_some_and(|lengths| lengths.is_null(row));
        if texts.is_null(row) || starts.is_null(row) || missing {
            parts.append_null();
        } else {
            let length = lengths.map(|lengths| lengths.value(row));
            parts.append_value(part(texts.value(row), starts.value(row), length));
        }
    }
    parts.finish()
}

/// `length` characters of a text from the one at `start`, counted from 1, or from the end where that is negative; before `start`
/// where the length is negative. 0 is the place before the first character.
fn part(text: &str, start: i64, length: Option<i64>) -> &str {
    let place = |from: i64, to: i64| {
        let skipped = usize::try_from(from.max(0)).unwrap_or(usize::MAX);
        let taken = usize::try_from(to.saturating_sub(from.max(0)).max(0)).unwrap_or(usize::MAX);
        let mut places = text.char_indices().map(|(place, _)| place);
        let first = places.clone().nth(skipped).unwrap_or(text.len());
        let behind = places.nth(skipped.saturating_add(taken)).unwrap_or(text.len());
        &text[first..behind]
    };
    let from = match start {
        0 if length.is_none() => 0,
        0.. => start - 1,
        _ => i64::try_from(text.chars().count())
            .unwrap_or(i64::MAX)
            .saturating_add(start),
    };
    match length {
        None => place(from, i64::MAX),
        Some(length @ 0..) => place(from, from.saturating_add(length)),
        Some(length) => place(from.saturating_add(length), from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `DuckDB` 2.0.0 has it.
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
            assert_eq!(part("hello", start, length), expected, "{start} {length:?}");
        }
        assert_eq!(part("größe", -3, Some(2)), "öß");
        assert_eq!(part("größe", 3, None), "öße");
    }
}
