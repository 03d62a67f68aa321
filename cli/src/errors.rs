//! The text and the exit code of errors.

use std::io::{self, ErrorKind, Write as _};

use pushdown_client::internal::{Escaped, is_control};

use crate::{
    Exit,
    terminal::{Printable, write_line},
};

/// An error in a pipeline's text, shown with a caret below it.
#[derive(Debug, thiserror::Error)]
#[error("{}", render(text, *position, message))]
pub(crate) struct PipelineError {
    pub(crate) text: String,
    pub(crate) position: Option<u32>,
    pub(crate) message: String,
}

/// An error of the command line that is only found later.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

impl PipelineError {
    /// Wraps an error of the library, with `text` if it is about the pipeline.
    pub(crate) fn wrap(text: &str, error: pushdown_client::Error) -> anyhow::Error {
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
pub(crate) fn report(error: &anyhow::Error) -> Exit {
    // The reader of our output has closed it.
    if error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    {
        return Exit::Success;
    }
    let usage = error.is::<PipelineError>() || error.is::<Usage>();
    // If stderr is closed, nobody reads the error.
    drop(if error.is::<PipelineError>() {
        // It has several lines.
        writeln!(Printable::text(io::stderr()), "error: {error}")
    } else if usage || error.is::<pushdown_client::Error>() {
        // The library's texts already include their causes.
        write_line(format_args!("error: {error}"))
    } else {
        write_line(format_args!("error: {error:#}"))
    });
    if usage { Exit::Usage } else { Exit::Failure }
}

/// Writes an error of the parsed arguments to stderr. `clap` also returns help and version as errors: they go to stdout.
pub(crate) fn report_arguments(error: &clap::Error) -> Exit {
    let text = error.render().to_string();
    // If the stream is closed, nobody reads the text.
    drop(
        if text.contains(|character| is_control(character) && character != '\n') {
            // It quotes an argument, which may be a name that a store has listed. The text has no colours.
            write!(Printable::text(io::stderr()), "{text}")
        } else {
            error.print()
        },
    );
    if error.use_stderr() {
        Exit::Usage
    } else {
        Exit::Success
    }
}

/// The message, then its line of the pipeline's text, with a caret.
fn render(text: &str, position: Option<u32>, message: &str) -> String {
    let message = Escaped(message);
    let Some(position) = position
        .map(|position| position as usize)
        .filter(|position| text.is_char_boundary(*position))
    else {
        return format!("invalid pipeline: {message}");
    };
    let start = text[..position].rfind('\n').map_or(0, |end| end + 1);
    let line = text[start..].lines().next().unwrap_or_default();
    // Tabs stay tabs, so that the caret is aligned with the text.
    let indent: String = text[start..position]
        .chars()
        .map(|char| if char == '\t' { '\t' } else { ' ' })
        .collect();
    format!("invalid pipeline {message}\n  {line}\n  {indent}^")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str) -> String {
        PipelineError::wrap(text, pushdown::Pipeline::parse(text).unwrap_err().into()).to_string()
    }

    #[test]
    fn the_caret_is_below_the_error() {
        insta::assert_snapshot!(
            [
                rendered("decode | rezise(short=256)"),
                rendered("decode | resize(short=256, filter=cubic)"),
                rendered("decode |\n\tresize(8, 8) | normalize(imagenet)"),
                rendered("decode | crop(\u{e9})"),
                rendered(""),
                rendered("to_float"),
                rendered("decode | "),
            ]
            .join("\n")
        );
    }

    #[test]
    fn a_position_beyond_the_text_is_left_out() {
        assert_eq!(render("abc", Some(9), "why"), "invalid pipeline: why");
        assert_eq!(render("\u{e9}", Some(1), "why"), "invalid pipeline: why");
        assert_eq!(
            render("abc", Some(3), "at 4: why"),
            "invalid pipeline at 4: why\n  abc\n     ^"
        );
    }
}
