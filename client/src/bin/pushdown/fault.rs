//! How errors look, and which exit code they have.

use std::{
    io::{self, ErrorKind, Write as _},
    process::ExitCode,
};

/// A fault in a pipeline's text, shown with a caret below it.
#[derive(Debug, thiserror::Error)]
#[error("{}", render(text, *position, message))]
pub(crate) struct PipelineFault {
    pub(crate) text: String,
    pub(crate) position: Option<u32>,
    pub(crate) message: String,
}

/// Something on the command line that only turns out to be wrong later.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

impl PipelineFault {
    /// An error of the library, as a fault of this text if it is one.
    pub(crate) fn of(text: &str, error: pushdown_client::Error) -> anyhow::Error {
        match error.kind() {
            pushdown_client::ErrorKind::Pipeline => {
                let (position, message) = (error.position(), error.to_string());
                Self {
                    text: text.to_owned(),
                    position,
                    message,
                }
                .into()
            }
            pushdown_client::ErrorKind::Config => Usage(error.to_string()).into(),
            _ => error.into(),
        }
    }
}

/// Writes the error to stderr.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    // Whoever reads our output has had enough.
    if error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    {
        return ExitCode::SUCCESS;
    }
    let usage = error.is::<PipelineFault>() || error.is::<Usage>();
    // The library's texts name their causes already.
    let text = if usage || error.is::<pushdown_client::Error>() {
        error.to_string()
    } else {
        format!("{error:#}")
    };
    // Nobody is left to tell if stderr is closed.
    drop(writeln!(io::stderr(), "error: {text}"));
    ExitCode::from(if usage { 2 } else { 1 })
}

/// The message, then the line of the text that it is about, with a caret.
fn render(text: &str, position: Option<u32>, message: &str) -> String {
    let Some(position) = position
        .map(|position| position as usize)
        .filter(|position| text.is_char_boundary(*position))
    else {
        return format!("the pipeline is wrong: {message}");
    };
    let start = text[..position].rfind('\n').map_or(0, |end| end + 1);
    let line = text[start..].lines().next().unwrap_or_default();
    // Tabs stay tabs, so that the caret stands where the text stands.
    let indent: String = text[start..position]
        .chars()
        .map(|char| if char == '\t' { '\t' } else { ' ' })
        .collect();
    format!("the pipeline is wrong {message}\n  {line}\n  {indent}^")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        PipelineFault::of(text, pushdown::Pipeline::parse(text).unwrap_err().into()).to_string()
    }

    #[test]
    fn the_caret_stands_below_the_fault() {
        insta::assert_snapshot!(
            [
                fault("decode | rezise(short=256)"),
                fault("decode | resize(short=256, filter=cubic)"),
                fault("decode |\n\tresize(8, 8) | normalize(imagenet)"),
                fault("decode | crop(\u{e9})"),
                fault(""),
                fault("to_float"),
                fault("decode | "),
            ]
            .join("\n")
        );
    }

    #[test]
    fn a_position_beyond_the_text_is_left_out() {
        assert_eq!(render("abc", Some(9), "why"), "the pipeline is wrong: why");
        assert_eq!(render("\u{e9}", Some(1), "why"), "the pipeline is wrong: why");
        assert_eq!(
            render("abc", Some(3), "at 4: why"),
            "the pipeline is wrong at 4: why\n  abc\n     ^"
        );
    }
}
