//! Parameters of steps.

/// A parameter of a step, used to bind arguments and in documentation.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    /// Name in a pipeline.
    pub name: &'static str,
    /// Type and default for documentation: `pixels`, `0..1 = 0.5`.
    pub form: &'static str,
    /// One line of explanation.
    pub summary: &'static str,
    /// Whether the argument needs its name.
    pub named_only: bool,
}

impl Param {
    /// A parameter whose argument can be positional.
    pub const fn positional(name: &'static str, form: &'static str, summary: &'static str) -> Self {
        Self {
            name,
            form,
            summary,
            named_only: false,
        }
    }

    /// A parameter whose argument needs its name.
    pub const fn named(name: &'static str, form: &'static str, summary: &'static str) -> Self {
        Self {
            name,
            form,
            summary,
            named_only: true,
        }
    }
}
