//! UUIDs as text.

use std::sync::Arc;

use arrow_array::{StringArray, cast::AsArray as _};
use arrow_schema::DataType;
use datafusion::{
    error::Result,
    logical_expr::{
        ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    },
};
use pushdown_core::uuid;

/// The text of a UUID: `550e8400-e29b-41d4-a716-446655440000`.
pub(crate) fn uuid_text(uuid: Expr) -> Expr {
    let signature = Signature::any(1, Volatility::Immutable);
    ScalarUDF::new_from_impl(UuidText { signature }).call(vec![uuid])
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct UuidText {
    signature: Signature,
}

impl ScalarUDFImpl for UuidText {
    fn name(&self) -> &'static str {
        "uuid_text"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [uuids] = datafusion::common::utils::take_function_args(self.name(), &arrays)?;
        let not_a_uuid = || {
            datafusion::common::internal_datafusion_err!(
                "invalid UUID column: expected 16 bytes per value, found {}",
                uuids.data_type()
            )
        };
        let uuids = uuids.as_fixed_size_binary_opt().ok_or_else(not_a_uuid)?;
        let texts: StringArray = uuids.iter().map(|value| value.map(uuid::to_text)).collect();
        Ok(ColumnarValue::Array(Arc::new(texts)))
    }
}
