//! Features that a device is opened without.

/// Optional features of an adapter that a device is opened without, as if the hardware lacked them:
/// to see how other hardware runs, or to go around a driver's fault.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Without {
    /// Cooperative matrices.
    pub coop: bool,
    /// Subgroup operations. Cooperative matrices need them.
    pub subgroups: bool,
    /// f16 in shaders. Cooperative matrices need it.
    pub f16: bool,
}

impl Without {
    /// The features left out by either.
    pub(super) fn and(self, other: Self) -> Self {
        Self { coop: self.coop || other.coop, subgroups: self.subgroups || other.subgroups, f16: self.f16 || other.f16 }
    }

    pub(super) fn features(self) -> wgpu::Features {
        let of = |left_out: bool, features: wgpu::Features| if left_out { features } else { wgpu::Features::empty() };
        of(self.coop || self.subgroups || self.f16, wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX)
            | of(self.subgroups, wgpu::Features::SUBGROUP | wgpu::Features::SUBGROUP_BARRIER)
            | of(self.f16, wgpu::Features::SHADER_F16)
    }
}

/// Names with commas between them, such as `coop,f16`.
impl std::str::FromStr for Without {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut without = Self::default();
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "coop" => without.coop = true,
                "subgroups" => without.subgroups = true,
                "f16" => without.f16 = true,
                other => return Err(format!("\"{other}\" is not coop, subgroups or f16")),
            }
        }
        Ok(without)
    }
}
