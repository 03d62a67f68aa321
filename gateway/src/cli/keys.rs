//! `keys`: checks a keys file, and makes keys for it.

mod check;
mod new;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(super) enum KeysCommand {
    /// Check a keys file, and show what each key may do; exit status 1 if it has faults
    Check(check::CheckArguments),
    /// Print a new key with a random secret, as a block for a keys file
    New(new::NewArguments),
}

impl KeysCommand {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Check(arguments) => arguments.run(),
            Self::New(arguments) => arguments.run(),
        }
    }
}
