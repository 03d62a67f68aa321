//! Compiles the functions that call libjpeg, against the headers of the libjpeg-turbo that `turbojpeg-sys` has built.

use std::{env, error::Error};

const FOLDER: &str = "src/image/decode/jpeg";
const SOURCES: [&str; 3] = ["call.c", "crop.c", "libjpeg.c"];

fn main() -> Result<(), Box<dyn Error>> {
    let sources = SOURCES.map(|name| format!("{FOLDER}/{name}"));
    for source in &sources {
        println!("cargo:rerun-if-changed={source}");
    }
    println!("cargo:rerun-if-changed={FOLDER}/call.h");
    let headers = env::var("DEP_TURBOJPEG_INCLUDE")
        .map_err(|_| "turbojpeg-sys names no folder of libjpeg's headers")?;
    cc::Build::new()
        .files(sources)
        .includes(headers.split(','))
        .flag_if_supported("-std=c11")
        .opt_level(3)
        .try_compile("pushdown_jpeg")?;
    Ok(())
}
