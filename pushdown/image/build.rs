//! Compiles the functions that call libjpeg, against the headers of the libjpeg-turbo that `turbojpeg-sys` has built.

use std::{env, error::Error};

const SOURCE: &str = "src/image/decode/jpeg/libjpeg.c";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={SOURCE}");
    let headers = env::var("DEP_TURBOJPEG_INCLUDE")
        .map_err(|_| "turbojpeg-sys names no folder of libjpeg's headers")?;
    cc::Build::new()
        .file(SOURCE)
        .includes(headers.split(','))
        .flag_if_supported("-std=c11")
        .opt_level(2)
        .try_compile("pushdown_jpeg")?;
    Ok(())
}
