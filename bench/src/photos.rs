//! The photos that are measured: real ones, brought to the sizes that the figures speak of.
//!
//! Made once from whatever photos the folder holds, and kept as files, so that every peer reads the same bytes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use pushdown::{Image, Pipeline, Sample};
use turbojpeg::{Compressor, PixelFormat, Subsamp};

use crate::report;

/// As many small photos as a batch has samples.
const SMALL: usize = 256;
const LARGE: usize = 8;

/// Folders of JPEG files.
#[derive(Debug, Clone)]
pub struct Photos {
    /// 256 of 500 x 375.
    pub small: PathBuf,
    /// 8 of 4000 x 3000, baseline.
    pub large: PathBuf,
    /// The same 8, progressive.
    pub progressive: PathBuf,
}

impl Photos {
    /// Finds the folders under `made`, or makes them from the photos under `source`.
    pub fn prepare(source: &Path, made: &Path) -> Result<Self> {
        let photos =
            Self { small: made.join("small"), large: made.join("large"), progressive: made.join("progressive") };
        if photos.progressive.is_dir() {
            return Ok(photos);
        }
        report::say(&format!("making photos of 500 x 375 and 4000 x 3000 in {}", made.display()));
        let sources = sources(source)?;
        let encode = |path: &Path, pipeline: &str, folder: &Path, count: usize, progressive: bool| -> Result<()> {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let image = run(pipeline, fs::read(path)?).with_context(|| format!("{}", path.display()))?;
            fs::create_dir_all(folder)?;
            Ok(fs::write(folder.join(format!("{count:03}-{name}.jpg")), jpeg(&image, progressive)?)?)
        };
        // Where there are too few, the same photo is cut out elsewhere: no two files are the same.
        for count in 0..SMALL {
            let (path, lap) = (&sources[count % sources.len()], count / sources.len());
            let side = 375 + 40 * lap;
            let pipeline = format!("decode(min_short={side}) | resize(short={side}) | center_crop(500, 375)");
            encode(path, &pipeline, &photos.small, count, false)?;
        }
        // The richest photos first: what was enlarged least is nearest to what a camera gives.
        for (count, path) in sources.iter().take(LARGE).enumerate() {
            let pipeline = "decode | resize(4000, 3000, filter=bicubic)";
            encode(path, pipeline, &photos.large, count, false)?;
            encode(path, pipeline, &photos.progressive, count, true)?;
        }
        Ok(photos)
    }
}

/// The contents of a folder's files, by name.
pub fn read_all(folder: &Path) -> Result<Vec<Vec<u8>>> {
    let mut paths: Vec<_> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort();
    let files: Vec<_> = paths.iter().map(fs::read).collect::<Result<_, _>>()?;
    ensure!(!files.is_empty(), "{} is empty", folder.display());
    Ok(files)
}

/// All JPEG photos under `folder`, the one with the most pixels first.
fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = vec![folder.to_owned()];
    let mut photos = Vec::new();
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder)
            .with_context(|| format!("no photos: cannot read {}, `make photos` fills it", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "jpg" || extension == "jpeg") {
                let header = pushdown::ImageHeader::read(&fs::read(&path)?);
                photos.extend(header.map(|header| (header.pixels(), path)));
            }
        }
    }
    photos.sort_by(|one, other| other.cmp(one));
    if photos.len() < LARGE {
        bail!("{} holds {} JPEG photos, {LARGE} are needed", folder.display(), photos.len());
    }
    Ok(photos.into_iter().map(|(_, path)| path).collect())
}

fn run(pipeline: &str, bytes: Vec<u8>) -> Result<Image> {
    let pipeline = Pipeline::parse(pipeline)?;
    let context = pushdown::Context::new(b"photo");
    match pipeline.run(0..pipeline.len(), Sample::Bytes(bytes.into()), &context)? {
        Sample::Image(image) => Ok(image),
        _ => bail!("`{pipeline}` does not end with an image"),
    }
}

/// 4:2:0 at quality 92, as cameras and photo sites write it.
fn jpeg(image: &Image, progressive: bool) -> Result<Vec<u8>> {
    let mut compressor = Compressor::new()?;
    compressor.set_quality(92)?;
    compressor.set_subsamp(Subsamp::Sub2x2)?;
    compressor.set_progressive(progressive)?;
    let view = turbojpeg::Image {
        pixels: image.pixels(),
        width: image.width() as usize,
        pitch: image.stride(),
        height: image.height() as usize,
        format: PixelFormat::RGB,
    };
    Ok(compressor.compress_to_vec(view)?)
}
