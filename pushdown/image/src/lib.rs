//! Steps on images and tensors, and the random steps.

pub mod augment;
pub mod image;
pub mod tensor;

/// Parses the text of one step.
#[cfg(test)]
fn parse_step<S: pushdown_core::step::Operator>(text: &str) -> S {
    use pushdown_core::language::{Args, NoModels, parse_calls};

    let calls = parse_calls(text).expect(text);
    let no_inner =
        |_: &str, _: &dyn pushdown_core::language::Resolver| unreachable!("the step has no pipeline");
    let args = Args::bind(&calls[0], S::NAME, S::PARAMS, &NoModels, no_inner).expect(text);
    S::parse(&args).expect(text)
}
