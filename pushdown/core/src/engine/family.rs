//! Families of steps: steps whose outputs change together have one version.

/// A family of steps. Every step names its families in [`Operator::FAMILIES`](crate::step::Operator::FAMILIES).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Codecs of images: `decode` and `encode`.
    Decode,
    /// Size and geometry of images: `resize`, `crop`, `center_crop`, and the resampling in `random_resized_crop`.
    Resample,
    /// Arithmetic on elements: `to_float`, `normalize`, `cast`, `quantize` and the like.
    Tensor,
    /// Random draws and the steps that use them.
    Random,
    /// Reading tables, and steps on their rows.
    Table,
}

impl Family {
    /// All families, in the order of their text.
    pub const ALL: [Self; 5] = [
        Self::Decode,
        Self::Resample,
        Self::Tensor,
        Self::Random,
        Self::Table,
    ];

    /// The name in the text of an [`Engine`](crate::Engine).
    pub const fn name(self) -> &'static str {
        match self {
            Self::Decode => "decode",
            Self::Resample => "resample",
            Self::Tensor => "tensor",
            Self::Random => "random",
            Self::Table => "table",
        }
    }

    /// The version in this build. Incremented when the output of any step of the family changes, by a decoder update for example.
    pub const fn version(self) -> u32 {
        match self {
            Self::Decode | Self::Resample | Self::Tensor | Self::Random | Self::Table => 4,
        }
    }
}

/// The versions of some families.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FamilyVersions([Option<u32>; Family::ALL.len()]);

impl FamilyVersions {
    /// All families at one version: that of an engine before families had versions of their own.
    pub(super) const fn uniform(version: u32) -> Self {
        Self([Some(version); Family::ALL.len()])
    }

    pub(super) const fn get(&self, family: Family) -> Option<u32> {
        self.0[family as usize]
    }

    pub(super) const fn set(&mut self, family: Family, version: u32) {
        self.0[family as usize] = Some(version);
    }

    pub(super) const fn is_empty(&self) -> bool {
        matches!(self.0, [None, None, None, None, None])
    }

    /// The families with a version, in the order of their text.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Family, u32)> {
        let versions = Family::ALL.into_iter().zip(self.0);
        versions.filter_map(|(family, version)| Some((family, version?)))
    }
}
