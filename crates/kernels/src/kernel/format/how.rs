//! How a kernel reads a weight: the formats that it can be bound to, and the pieces that it gets.

use super::{Format, ROWS_SUMS, USUAL_ROWS};

/// How a kernel reads a weight.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum How {
    /// Four elements at a time, as floats. Any format.
    Any,
    /// Four elements at a time. Formats without units.
    Unitless,
    /// Four elements at a time. Formats that have no units and are not of 16 bits.
    Blocks,
    /// Four rows with f32 activations, eight columns at a time. Any format.
    Eights,
    /// Four rows with f32 activations that a workgroup stages. Formats with a piece for teams.
    Teams,
    /// Two rows with one row of 8-bit activations, a unit at a time. Formats with steps.
    Units,
    /// Units with up to 8 rows of 8-bit activations. Formats with steps.
    Rows,
    /// Units, for tiles of 128 rows. Formats with units.
    Groups,
    /// Floats of 16 bits, for tiles of 128 rows. Formats of 16 bits.
    Halves,
    /// Tiles of 16 to 96 rows. Formats with units or of 16 bits.
    Tiles,
    /// Staged for cooperative matrices in units or, in formats without units, 32 columns at a time.
    /// Any format.
    Staged,
    /// A second weight in the format of the binding before, whose types it shares.
    Second,
}

impl How {
    /// Whether weights of a format can be read so.
    #[must_use]
    pub fn reads(self, format: &Format) -> bool {
        match self {
            Self::Any | Self::Eights | Self::Staged | Self::Second => true,
            Self::Unitless => format.units.is_none(),
            Self::Blocks => format.units.is_none() && !format.is_halves(),
            Self::Teams => format.teams().is_some(),
            Self::Units | Self::Rows => format.in_8_bits(),
            Self::Groups => format.units.is_some(),
            Self::Halves => format.is_halves(),
            Self::Tiles => format.tiles().is_some(),
        }
    }

    /// The WGSL of a binding `W` with this format; `None` if the format cannot be read so. `wide`:
    /// whether 32 neighbouring threads share a subgroup.
    #[must_use]
    pub fn pieces(self, format: &Format, wide: bool) -> Option<String> {
        let elements = format.elements;
        match self {
            Self::Any | Self::Unitless | Self::Blocks => Some(elements.to_string()),
            Self::Eights => Some(format.eights()),
            Self::Teams => format.teams(),
            Self::Staged => Some(format.staged()),
            Self::Tiles => format.tiles(),
            Self::Halves | Self::Second => format.second(),
            Self::Units => {
                let units = format.units?;
                Some([elements, units.unit, units.step?].join("\n"))
            }
            Self::Rows => {
                let units = format.units?;
                let rows = if wide { units.rows } else { USUAL_ROWS };
                Some([elements, units.unit, &[units.groups, rows, ROWS_SUMS].concat()].join("\n"))
            }
            Self::Groups => {
                let units = format.units?;
                Some([elements, units.unit, &[units.groups, units.store].concat()].join("\n"))
            }
        }
    }

    /// The binding, in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Any | Self::Eights | Self::Staged => "weight",
            Self::Unitless => "weight without units",
            Self::Blocks => "weight with neither units nor 16 bits",
            Self::Teams => "weight that teams read",
            Self::Units | Self::Rows => "weight in units with steps",
            Self::Groups => "weight in units",
            Self::Halves => "weight of 16 bits",
            Self::Tiles => "weight in units or of 16 bits",
            Self::Second => "weight as the one before",
        }
    }
}
