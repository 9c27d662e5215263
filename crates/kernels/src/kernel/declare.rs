//! The declaration of a kernel.

/// The contents of a file under `shaders/`. `build.rs` finds the folder.
macro_rules! wgsl {
    ($($path:literal)+) => { include_str!(concat!(env!("WEFT_SHADERS"), "/", $($path),+)) };
}

/// Declares a kernel: a static [`Kernel`](crate::kernel::Kernel), its typed params and its bindings
/// by name.
///
/// A name in the list of pieces is a slot, which every variant fills: `vary { WG: 256 }` writes
/// `const WG = 256u;` there, and `choose ["shared/silu4.wgsl"]` inserts pieces. Each variant is a
/// static [`Variant`](crate::kernel::Variant); without `needs` it has the needs of the kernel,
/// without `peak` the usual [`PEAK`](crate::kernel::PEAK).
///
/// A binding says how the kernel uses it ([`Access`](crate::kernel::Access)): `w: Weight(Units)`
/// reads a weight in units ([`How`](crate::kernel::format::How)), and is bound to weights of the
/// formats that can be read so. `only Blockless` before the slots of a variant says that it serves
/// fewer formats or states than the kernel ([`Only`](crate::kernel::Only)).
///
/// `constants: [window]` names params that plans of many rows set as constants, too.
///
/// `Bind { x, y }.dispatch(Params { .. }, grid)` makes a [`crate::kernel::dispatch::Dispatch`] of a
/// kernel without slots, `Bind { x, y }.dispatch(&VARIANT, Params { .. }, grid)` of a kernel with
/// slots.
///
/// `like: other::KERNEL` takes params, bindings, oracle and bound from another kernel. Its `Bind`
/// dispatches both kernels. `reads: Teams` says that the kernel reads its weights in another way.
///
/// A part of the list may be a path below `shaders/`, or `("cube.wgsl", CUBE)`: a name and a text.
/// A crate that depends on this one declares its own kernels with texts, and tests them with
/// [`sweep`](crate::testing::own::sweep()) (feature `testing`).
#[macro_export]
macro_rules! kernel {
    // Without slots.
    (
        $kernel:ident: $name:literal,
        $(entry: $entry:literal,)?
        wgsl: $wgsl:tt,
        params: $params:ident $fields:tt,
        bindings: $bind:ident $bindings:tt,
        cpu: $cpu:path,
        nmse: $nmse:expr,
        needs: $needs:tt $(,)?
    ) => {
        $crate::kernel! { @own $kernel: $name [$($entry)?] $wgsl $params $fields [] $bind $bindings $cpu, $nmse,
            &[&$crate::declared::Variant { kernel: &$kernel, name: $name, fill: &[], needs: $crate::kernel!(@needs $needs), peak: $crate::declared::PEAK, only: $crate::declared::Only::Every }] }

        impl $bind {
            fn dispatch(self, params: $params, grid: $crate::declared::dispatch::Grid) -> $crate::declared::dispatch::Dispatch {
                self.dispatch_of($kernel.only(), params, grid)
            }
        }
    };
    // With slots.
    (
        $kernel:ident: $name:literal,
        $(entry: $entry:literal,)?
        wgsl: $wgsl:tt,
        params: $params:ident $fields:tt,
        $(constants: $constants:tt,)?
        bindings: $bind:ident $bindings:tt,
        cpu: $cpu:path,
        nmse: $nmse:expr,
        needs: $needs:tt,
        variants: {
            $($variant:ident: $own_name:literal $(needs $own_needs:tt)? $(peak $own_peak:literal)? $(only $only:ident)? { $($slot:ident: $how:ident $what:tt),+ $(,)? }),+ $(,)?
        } $(,)?
    ) => {
        $crate::kernel! { @own $kernel: $name [$($entry)?] $wgsl $params $fields [$($constants)?] $bind $bindings $cpu, $nmse, &[$(&$variant),+] }
        $($crate::kernel! { @variant $kernel $variant: $own_name [$($own_needs)? $needs] [$($own_peak)?] [$($only)?] { $($slot: $how $what),+ } })+

        impl $bind {
            fn dispatch(self, variant: &'static $crate::declared::Variant, params: $params, grid: $crate::declared::dispatch::Grid) -> $crate::declared::dispatch::Dispatch {
                self.dispatch_of(variant, params, grid)
            }
        }
    };
    // Without slots, like another kernel.
    ($kernel:ident: $name:literal, wgsl: $wgsl:tt, like: $like:path, $(reads: $how:ident,)? needs: $needs:tt $(,)?) => {
        $crate::kernel! { @like $kernel: $name $wgsl $like [$($how)?],
            &[&$crate::declared::Variant { kernel: &$kernel, name: $name, fill: &[], needs: $crate::kernel!(@needs $needs), peak: $crate::declared::PEAK, only: $crate::declared::Only::Every }] }
    };
    // With slots, like another kernel.
    (
        $kernel:ident: $name:literal,
        wgsl: $wgsl:tt,
        like: $like:path,
        $(reads: $reads:ident,)?
        needs: $needs:tt,
        variants: {
            $($variant:ident: $own_name:literal $(needs $own_needs:tt)? $(peak $own_peak:literal)? $(only $only:ident)? { $($slot:ident: $how:ident $what:tt),+ $(,)? }),+ $(,)?
        } $(,)?
    ) => {
        $crate::kernel! { @like $kernel: $name $wgsl $like [$($reads)?], &[$(&$variant),+] }
        $($crate::kernel! { @variant $kernel $variant: $own_name [$($own_needs)? $needs] [$($own_peak)?] [$($only)?] { $($slot: $how $what),+ } })+
    };
    (
        @own $kernel:ident: $name:literal [$($entry:literal)?] [$($part:tt),+ $(,)?]
        $params:ident { $($field:ident: $ty:ident),* $(,)? }
        [$([$($constant:ident),+ $(,)?])?]
        $bind:ident { $($binding:ident: $access:ident $(($how:ident))?),+ $(,)? }
        $cpu:path, $nmse:expr, $variants:expr
    ) => {
        #[allow(unused_imports)]
        use $cpu as _;

        #[doc = concat!("The kernel `", $name, "`.")]
        pub static $kernel: $crate::declared::Kernel = $crate::declared::Kernel {
            name: $name,
            entry: $crate::kernel!(@first $($entry)? $name),
            wgsl: &[$($crate::kernel!(@part $part)),+],
            params: &[$((stringify!($field), $crate::kernel!(@scalar $ty))),*],
            constants: &[$($(stringify!($constant)),+)?],
            bindings: &[$((stringify!($binding), $crate::kernel!(@access $access $($how)?))),+],
            oracle: stringify!($cpu),
            nmse: $nmse,
            file: file!(),
            variants: $variants,
        };

        #[derive(Copy, Clone, Debug)]
        struct $params { $($field: $ty),* }

        impl $params {
            /// The bytes of the uniform: every field is a word.
            fn bytes(self) -> Vec<u8> {
                [$(self.$field.to_ne_bytes()),*].concat()
            }
        }

        struct $bind { $($binding: $crate::declared::dispatch::Arg),+ }

        impl $bind {
            fn dispatch_of(self, variant: &'static $crate::declared::Variant, params: $params, grid: $crate::declared::dispatch::Grid) -> $crate::declared::dispatch::Dispatch {
                debug_assert!(variant.kernel.binds_as(&$kernel), "{} binds others", variant.name);
                $crate::declared::dispatch::Dispatch {
                    variant,
                    params: params.bytes(),
                    args: vec![$(self.$binding),+],
                    grid,
                    when: $crate::declared::dispatch::When::Always,
                }
            }
        }
    };
    (@like $kernel:ident: $name:literal [$($part:tt),+ $(,)?] $like:path [$($how:ident)?], $variants:expr) => {
        #[doc = concat!("The kernel `", $name, "`.")]
        pub static $kernel: $crate::declared::Kernel = $crate::declared::Kernel {
            name: $name,
            entry: $name,
            wgsl: &[$($crate::kernel!(@part $part)),+],
            params: $like.params,
            constants: $like.constants,
            bindings: $crate::kernel!(@bindings $like $(, $how)?),
            oracle: $like.oracle,
            nmse: $like.nmse,
            file: file!(),
            variants: $variants,
        };
    };
    (@variant $kernel:ident $variant:ident: $name:literal [$needs:tt $($usual:tt)?] [$($peak:literal)?] [$($only:ident)?] { $($slot:ident: $how:ident $what:tt),+ }) => {
        #[doc = concat!("The variant `", $name, "`.")]
        pub static $variant: $crate::declared::Variant = $crate::declared::Variant {
            kernel: &$kernel,
            name: $name,
            fill: &[$((stringify!($slot), $crate::kernel!(@fill $how $what))),+],
            needs: $crate::kernel!(@needs $needs),
            peak: $crate::kernel!(@peak $($peak)?),
            only: $crate::kernel!(@only $($only)?),
        };
    };
    (@needs { threads: $threads:literal, workgroup_bytes: $bytes:literal }) => {
        $crate::declared::Needs { threads: $threads, workgroup_bytes: $bytes }
    };
    (@bindings $like:path) => { $like.bindings };
    (@bindings $like:path, $how:ident) => {{
        static BINDINGS: [(&str, $crate::declared::Access); $like.bindings.len()] =
            $crate::declared::reading($like.bindings, $crate::declared::format::How::$how);
        &BINDINGS
    }};
    (@access Weight $how:ident) => { $crate::declared::Access::Weight($crate::declared::format::How::$how) };
    (@access Kv $how:ident) => { $crate::declared::Access::Kv($crate::declared::KvUse::$how) };
    (@access $access:ident) => { $crate::declared::Access::$access };
    (@only) => { $crate::declared::Only::Every };
    (@only $only:ident) => { $crate::declared::Only::$only };
    (@peak) => { $crate::declared::PEAK };
    (@peak $peak:literal) => { $peak };
    (@fill vary { $($constant:ident: $value:literal),+ $(,)? }) => { $crate::declared::Fill::Vary(&[$((stringify!($constant), $value)),+]) };
    (@fill choose [$($file:literal),+ $(,)?]) => { $crate::declared::Fill::Choose(&[$($crate::kernel!(@piece $file)),+]) };
    (@part $file:literal) => { $crate::declared::Part::Piece($crate::kernel!(@piece $file)) };
    (@part ($path:expr, $text:expr)) => { $crate::declared::Part::Piece(($path, $text)) };
    (@part $slot:ident) => { $crate::declared::Part::Slot(stringify!($slot)) };
    (@piece $file:literal) => { ($file, wgsl!($file)) };
    (@first $first:literal $($second:literal)?) => { $first };
    (@scalar u32) => { $crate::declared::Scalar::U32 };
    (@scalar f32) => { $crate::declared::Scalar::F32 };
}
