//! The declaration of a family.

/// Declares a family from its list: its modules, its recorded operations and its kernels.
///
/// A row names a file, the operations in it, its kernels, and the file of its parity cases. The
/// sections are, in this order:
///
/// * `operations` may be recorded. A function with the file's name records each. Braces hold what
///   users need beside it.
/// * `derivatives` are such operations of training.
/// * `primitives` have an oracle. The planner makes them. The function behind `=` gives the name of
///   the recorded operation that one does.
/// * `fused` do the work of several operations. The planner makes them.
/// * `kernels` serve operations of other rows.
/// * `modules` have no kernel, and `cases` are cases of several rows.
macro_rules! family {
    (
        $family:ident
        operations { $($op:ident: $Op:ident $({ $($op_more:tt)* })? [$($op_kernel:ident),*] $($op_case:ident)?,)* }
        derivatives { $($back:ident: $Back:ident $({ $($back_more:tt)* })? [$($back_kernel:ident),*] $($back_case:ident)?,)* }
        primitives { $($prim:ident: $Prim:ident [$($prim_kernel:ident),*] $($prim_case:ident)? = $name:expr,)* }
        fused { $($fused:ident: $($Fused:ident)+ [$($fused_kernel:ident),*] $($fused_case:ident)?,)* }
        kernels { $($own:ident: [$($own_kernel:ident),*] $($own_case:ident)?,)* }
        modules { $($module:ident,)* }
        cases { $($case:ident,)* }
    ) => {
        $(pub mod $op; $(#[cfg(feature = "testing")] pub mod $op_case;)?)*
        $(pub mod $back; $(#[cfg(feature = "testing")] pub mod $back_case;)?)*
        $(pub mod $prim; $(#[cfg(feature = "testing")] pub mod $prim_case;)?)*
        $(pub mod $fused; $(#[cfg(feature = "testing")] pub mod $fused_case;)?)*
        $(pub mod $own; $(#[cfg(feature = "testing")] pub mod $own_case;)?)*
        $(pub mod $module;)*
        $(#[cfg(feature = "testing")] pub mod $case;)*

        /// What a recording may hold.
        pub mod recorded {
            $(pub use super::$op::{$Op, $op $(, $($op_more)*)?};)*
        }

        /// What a recording of training may hold as well.
        pub mod derivatives {
            $(pub use super::$back::{$Back, $back $(, $($back_more)*)?};)*
        }

        /// The kernels of the family.
        pub static KERNELS: &[&$crate::kernel::Kernel] = &[
            $($(&$op::$op_kernel,)*)* $($(&$back::$back_kernel,)*)* $($(&$prim::$prim_kernel,)*)* $($(&$fused::$fused_kernel,)*)*
            $($(&$own::$own_kernel,)*)*
        ];
    };
}
