//! The transcendental functions of SQL, from the `libm` crate in place of the host's: every host computes the same.

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

/// What stands in place of DataFusion's function of the same name.
#[derive(Debug, Clone, Copy)]
enum Form {
    Unary(Unary),
    Binary(Binary),
    /// Of one number, or of two.
    Either(Unary, Binary),
}

/// Their names, and what they are also called.
const FUNCTIONS: [(&str, &[&str], Form); 21] = [
    ("acos", &[], Form::Unary(libm::acos)),
    ("acosh", &[], Form::Unary(libm::acosh)),
    ("asin", &[], Form::Unary(libm::asin)),
    ("asinh", &[], Form::Unary(libm::asinh)),
    ("atan", &[], Form::Unary(libm::atan)),
    ("atan2", &[], Form::Binary(libm::atan2)),
    ("atanh", &[], Form::Unary(libm::atanh)),
    ("cbrt", &[], Form::Unary(libm::cbrt)),
    ("cos", &[], Form::Unary(libm::cos)),
    ("cosh", &[], Form::Unary(libm::cosh)),
    ("cot", &[], Form::Unary(|x| 1.0 / libm::tan(x))),
    ("exp", &[], Form::Unary(libm::exp)),
    ("ln", &[], Form::Unary(libm::log)),
    (
        "log",
        &[],
        Form::Either(libm::log10, |base, x| libm::log(x) / libm::log(base)),
    ),
    ("log10", &[], Form::Unary(libm::log10)),
    ("log2", &[], Form::Unary(libm::log2)),
    ("power", &["pow"], Form::Binary(libm::pow)),
    ("sin", &[], Form::Unary(libm::sin)),
    ("sinh", &[], Form::Unary(libm::sinh)),
    ("tan", &[], Form::Unary(libm::tan)),
    ("tanh", &[], Form::Unary(libm::tanh)),
];

/// `functions` with those in place of their namesakes.
pub(super) fn portable(functions: Vec<Arc<ScalarUDF>>) -> Vec<Arc<ScalarUDF>> {
    let ours = |name: &str| FUNCTIONS.iter().any(|(ours, ..)| *ours == name);
    let others = functions.into_iter().filter(|function| !ours(function.name()));
    let made = FUNCTIONS.into_iter();
    let made = made
        .map(|(name, aliases, form)| Arc::new(ScalarUDF::new_from_impl(Portable::new(name, aliases, form))));
    others.chain(made).collect()
}

/// `power`.
pub(super) fn power() -> ScalarUDF {
    ScalarUDF::new_from_impl(Portable::new("power", &["pow"], Form::Binary(libm::pow)))
}

#[derive(Debug)]
struct Portable {
    name: &'static str,
    aliases: Vec<String>,
    signature: Signature,
    form: Form,
}

/// There is one of each name.
impl PartialEq for Portable {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Portable {}

impl std::hash::Hash for Portable {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl Portable {
    fn new(name: &'static str, aliases: &[&str], form: Form) -> Self {
        let numbers = |count| TypeSignature::Uniform(count, vec![DataType::Float64]);
        let signature = match form {
            Form::Unary(_) => numbers(1),
            Form::Binary(_) => numbers(2),
            Form::Either(..) => TypeSignature::OneOf(vec![numbers(1), numbers(2)]),
        };
        Self {
            name,
            aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
            signature: Signature::new(signature, Volatility::Immutable),
            form,
        }
    }
}

impl ScalarUDFImpl for Portable {
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
        let values: Float64Array = match (self.form, numbers.as_slice()) {
            (Form::Unary(function) | Form::Either(function, _), [one]) => one.unary(function),
            (Form::Binary(function) | Form::Either(_, function), [one, other]) => {
                let pairs = one.iter().zip(other.iter());
                pairs.map(|(one, other)| Some(function(one?, other?))).collect()
            }
            _ => return datafusion::common::exec_err!("{} takes numbers", self.name),
        };
        let scalar = args
            .args
            .iter()
            .all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        if scalar && values.len() == 1 {
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

    /// A new function of DataFusion's that calls the host's library has to be looked at before it gets in.
    #[test]
    fn every_function_of_numbers_is_known() {
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
        let after = portable(before.clone());
        assert_eq!(before.len(), after.len());
        for function in datafusion::functions::math::functions() {
            let known = after
                .iter()
                .find(|after| after.name() == function.name())
                .unwrap();
            let ours = known.inner().downcast_ref::<Portable>().is_some();
            assert_ne!(ours, exact.contains(&function.name()), "{}", function.name());
            assert_eq!(known.aliases(), function.aliases(), "{}", function.name());
        }
    }
}
