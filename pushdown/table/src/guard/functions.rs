//! The transcendental functions of SQL from the `libm` crate instead of the host's C library, so that every host computes the
//! same values.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, cast::AsArray as _, types::Float64Type};
use arrow_schema::DataType;
use datafusion::{
    error::Result,
    logical_expr::{
        ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
    },
};

/// A function of one number.
type Unary = fn(f64) -> f64;
/// A function of two numbers.
type Binary = fn(f64, f64) -> f64;

/// The implementation by number of arguments.
#[derive(Debug, Clone, Copy)]
enum Implementation {
    Unary(Unary),
    Binary(Binary),
    /// One or two arguments.
    Either(Unary, Binary),
}

/// Name, aliases and implementation.
const FUNCTIONS: [(&str, &[&str], Implementation); 21] = [
    ("acos", &[], Implementation::Unary(libm::acos)),
    ("acosh", &[], Implementation::Unary(libm::acosh)),
    ("asin", &[], Implementation::Unary(libm::asin)),
    ("asinh", &[], Implementation::Unary(libm::asinh)),
    ("atan", &[], Implementation::Unary(libm::atan)),
    ("atan2", &[], Implementation::Binary(libm::atan2)),
    ("atanh", &[], Implementation::Unary(libm::atanh)),
    ("cbrt", &[], Implementation::Unary(libm::cbrt)),
    ("cos", &[], Implementation::Unary(libm::cos)),
    ("cosh", &[], Implementation::Unary(libm::cosh)),
    ("cot", &[], Implementation::Unary(|x| 1.0 / libm::tan(x))),
    ("exp", &[], Implementation::Unary(libm::exp)),
    ("ln", &[], Implementation::Unary(libm::log)),
    (
        "log",
        &[],
        Implementation::Either(libm::log10, |base, x| libm::log(x) / libm::log(base)),
    ),
    ("log10", &[], Implementation::Unary(libm::log10)),
    ("log2", &[], Implementation::Unary(libm::log2)),
    ("power", &["pow"], Implementation::Binary(libm::pow)),
    ("sin", &[], Implementation::Unary(libm::sin)),
    ("sinh", &[], Implementation::Unary(libm::sinh)),
    ("tan", &[], Implementation::Unary(libm::tan)),
    ("tanh", &[], Implementation::Unary(libm::tanh)),
];

/// Replaces DataFusion's functions of the same names.
pub(crate) fn with_portable_functions(functions: Vec<Arc<ScalarUDF>>) -> Vec<Arc<ScalarUDF>> {
    let is_replaced = |name: &str| FUNCTIONS.iter().any(|(replaced, ..)| *replaced == name);
    let others = functions
        .into_iter()
        .filter(|function| !is_replaced(function.name()));
    let portable = FUNCTIONS.into_iter().map(|(name, aliases, implementation)| {
        let function = PortableFunction::new(name, aliases, implementation);
        Arc::new(ScalarUDF::new_from_impl(function))
    });
    others.chain(portable).collect()
}

/// The function `power`.
pub(crate) fn power() -> ScalarUDF {
    ScalarUDF::new_from_impl(PortableFunction::new(
        "power",
        &["pow"],
        Implementation::Binary(libm::pow),
    ))
}

#[derive(Debug)]
struct PortableFunction {
    name: &'static str,
    aliases: Vec<String>,
    signature: Signature,
    implementation: Implementation,
}

/// Names are unique.
impl PartialEq for PortableFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for PortableFunction {}

impl std::hash::Hash for PortableFunction {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl PortableFunction {
    fn new(name: &'static str, aliases: &[&str], implementation: Implementation) -> Self {
        let numbers = |count| TypeSignature::Uniform(count, vec![DataType::Float64]);
        let signature = match implementation {
            Implementation::Unary(_) => numbers(1),
            Implementation::Binary(_) => numbers(2),
            Implementation::Either(..) => TypeSignature::OneOf(vec![numbers(1), numbers(2)]),
        };
        Self {
            name,
            aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
            signature: Signature::new(signature, Volatility::Immutable),
            implementation,
        }
    }
}

impl ScalarUDFImpl for PortableFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let numbers: Vec<&Float64Array> = arrays
            .iter()
            .filter_map(|array| array.as_primitive_opt::<Float64Type>())
            .collect();
        let values: Float64Array = match (self.implementation, numbers.as_slice()) {
            (Implementation::Unary(function) | Implementation::Either(function, _), [one]) => {
                one.unary(function)
            }
            (Implementation::Binary(function) | Implementation::Either(_, function), [one, other]) => {
                let pairs = one.iter().zip(other.iter());
                pairs.map(|(one, other)| Some(function(one?, other?))).collect()
            }
            _ => {
                return datafusion::common::exec_err!(
                    "invalid arguments of `{}`: expected numbers",
                    self.name
                );
            }
        };
        let all_scalar = args
            .args
            .iter()
            .all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        if all_scalar && values.len() == 1 {
            let value = datafusion::common::ScalarValue::try_from_array(&values, 0)?;
            return Ok(ColumnarValue::Scalar(value));
        }
        Ok(ColumnarValue::Array(Arc::new(values) as ArrayRef))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::execution::SessionStateDefaults;

    use super::*;

    /// If DataFusion adds a math function, decide whether it calls the host's C library.
    #[test]
    fn every_math_function_is_either_exact_or_portable() {
        let exact = [
            "abs",
            "ceil",
            "degrees",
            "factorial",
            "floor",
            "gcd",
            "isnan",
            "iszero",
            "lcm",
            "nanvl",
            "pi",
            "radians",
            "random",
            "round",
            "signum",
            "sqrt",
            "trunc",
        ];
        let before = SessionStateDefaults::default_scalar_functions();
        let after = with_portable_functions(before.clone());
        assert_eq!(before.len(), after.len());
        for function in datafusion::functions::math::functions() {
            let function_after = after
                .iter()
                .find(|after| after.name() == function.name())
                .unwrap();
            let is_portable = function_after
                .inner()
                .downcast_ref::<PortableFunction>()
                .is_some();
            assert_ne!(
                is_portable,
                exact.contains(&function.name()),
                "{}",
                function.name()
            );
            assert_eq!(
                function_after.aliases(),
                function.aliases(),
                "{}",
                function.name()
            );
        }
    }
}
