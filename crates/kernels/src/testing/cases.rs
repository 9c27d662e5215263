//! The parity cases of all families.

use super::parity::MakeCase;
use crate::attention::list as attention;
use crate::elementwise::list as elementwise;
use crate::experts::list as experts;
use crate::matmul::list as matmul;
use crate::norm::list as norm;
use crate::sampling::list as sampling;
use crate::training::list as training;

/// The cases of a family, from its list.
macro_rules! cases_of {
    (
        $family:ident
        operations { $($op:ident: $Op:ident $({ $($op_more:tt)* })? [$($op_kernel:ident),*] $($op_case:ident)?,)* }
        derivatives { $($back:ident: $Back:ident $({ $($back_more:tt)* })? [$($back_kernel:ident),*] $($back_case:ident)?,)* }
        primitives { $($prim:ident: $Prim:ident [$($prim_kernel:ident),*] $($prim_case:ident)? = $name:expr,)* }
        fused { $($fused:ident: $($Fused:ident)+ [$($fused_kernel:ident),*] $($fused_case:ident)?,)* }
        kernels { $($own:ident: [$($own_kernel:ident),*] $($own_case:ident)?,)* }
        modules $modules:tt
        cases { $($case:ident,)* }
    ) => {
        [
            $($(crate::$family::$op_case::CASES,)?)*
            $($(crate::$family::$back_case::CASES,)?)*
            $($(crate::$family::$prim_case::CASES,)?)*
            $($(crate::$family::$fused_case::CASES,)?)*
            $($(crate::$family::$own_case::CASES,)?)*
            $(crate::$family::$case::CASES,)*
        ]
        .concat()
    };
}

/// The parity cases, by the stem of their operation.
#[must_use]
pub fn cases() -> Vec<(&'static str, MakeCase)> {
    let families = [
        elementwise! { cases_of! },
        sampling! { cases_of! },
        norm! { cases_of! },
        matmul! { cases_of! },
        attention! { cases_of! },
        experts! { cases_of! },
        training! { cases_of! },
    ];
    families.concat()
}
