//! What plans are made of: the operations that may be recorded, those that the planner makes, and
//! the kernels of all of them. Everything here follows from the lists of the families.

mod own;

pub use own::Own;
#[cfg(feature = "testing")]
pub use own::Owned;

use crate::attention::attention_flash::AttentionFlash;
use crate::attention::list as attention;
use crate::elementwise::list as elementwise;
use crate::experts::list as experts;
use crate::graph::host::Host;
#[cfg(feature = "testing")]
use crate::graph::operation::Parameters;
use crate::graph::operation::{Io, Operation, Reference, Work};
use crate::graph::record::{self, Stage};
use crate::graph::tensor::{Counts, Tensor, Weight};
use crate::graph::values::Values;
use crate::kernel::dispatch::{Dispatch, Lower, Lowering};
use crate::kernel::{Kernel, Variant};
use crate::matmul::list as matmul;
use crate::matmul::product::Product;
use crate::norm::list as norm;
use crate::sampling::list as sampling;
use crate::training::list as training;
use gguf::BoxFuture;

/// Passes the operations of all families to `language!`, by section: those that may be recorded,
/// derivatives, primitives and fused ones.
macro_rules! gather {
    ([] $($sections:tt)*) => { language! { $($sections)* } };
    ([$next:ident $($more:ident)*] $($sections:tt)*) => { $next! { gather_from! [$($more)*] $($sections)* } };
}

/// Adds the operations of one family.
macro_rules! gather_from {
    (
        [$($more:ident)*] { $($ops:tt)* } { $($backs:tt)* } { $($prims:tt)* } { $($all_fused:tt)* }
        $family:ident
        operations { $($op:ident: $Op:ident $({ $($op_more:tt)* })? [$($op_kernel:ident),*] $($op_case:ident)?,)* }
        derivatives { $($back:ident: $Back:ident $({ $($back_more:tt)* })? [$($back_kernel:ident),*] $($back_case:ident)?,)* }
        primitives { $($prim:ident: $Prim:ident [$($prim_kernel:ident),*] $($prim_case:ident)? = $name:expr,)* }
        fused { $($fused:ident: $($Fused:ident)+ [$($fused_kernel:ident),*] $($fused_case:ident)?,)* }
        kernels $kernels:tt modules $modules:tt cases $cases:tt
    ) => {
        gather! {
            [$($more)*]
            { $($ops)* $($family $op $Op,)* }
            { $($backs)* $($family $back $Back,)* }
            { $($prims)* $($family $prim $Prim = $name,)* }
            { $($all_fused)* $($($family $fused $Fused,)+)* }
        }
    };
}

macro_rules! language {
    (
        { $($op_family:ident $op:ident $Op:ident,)* }
        { $($back_family:ident $back:ident $Back:ident,)* }
        { $($prim_family:ident $prim:ident $Prim:ident = $name:expr,)* }
        { $($fused_family:ident $fused:ident $Fused:ident,)* }
    ) => {
        /// Every operation that may be recorded.
        #[derive(Clone, Debug)]
        pub enum Op {
            $($Op(crate::$op_family::$op::$Op),)*
            /// An operation of a derivative.
            Backward(Backward),
        }

        impl Op {
            /// The name of the function that records the operation.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$Op(_) => stringify!($op),)*
                    Self::Backward(op) => op.name(),
                }
            }
        }

        /// Every operation of derivatives.
        #[derive(Clone, Debug)]
        pub enum Backward {
            $($Back(crate::$back_family::$back::$Back),)*
        }

        impl Backward {
            /// The name of the function that records the operation.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$Back(_) => stringify!($back),)*
                }
            }
        }

        /// Every operation of a plan.
        #[derive(Clone, Debug)]
        pub enum Lowered {
            Op(Op),
            $($Prim(crate::$prim_family::$prim::$Prim),)*
            $($Fused(crate::$fused_family::$fused::$Fused),)*
            Own(Own),
        }

        /// An operation with an oracle: a recorded one, or one that plans add to round activations.
        /// Parity cases record any of them.
        #[derive(Clone, Debug)]
        pub enum Primitive {
            Op(Op),
            $($Prim(crate::$prim_family::$prim::$Prim),)*
            AttentionFlash(AttentionFlash),
            Own(Own),
        }

        impl Primitive {
            /// The name of the function that records the operation.
            pub(crate) fn name(&self) -> &'static str {
                match self {
                    Self::Op(op) => op.name(),
                    $(Self::$Prim(op) => {
                        let name: fn(&crate::$prim_family::$prim::$Prim) -> &'static str = $name;
                        name(op)
                    })*
                    Self::AttentionFlash(_) => "attention",
                    Self::Own(op) => op.name(),
                }
            }
        }

        operation! { Op: $($Op,)* Backward, }
        operation! { Backward: $($Back,)* }
        operation! { Primitive: Op, $($Prim,)* AttentionFlash, Own, }
        operation! { Lowered: Op, $($Prim,)* $($Fused,)* Own, }
        reference! { Op: $($Op,)* Backward, }
        reference! { Backward: $($Back,)* }
        reference! { Primitive: Op, $($Prim,)* AttentionFlash, Own, }
        impl Values for Op {
            /// # Panics
            /// For an operation of a derivative.
            fn each(&mut self, f: &mut dyn FnMut(&mut Tensor)) {
                match self {
                    $(Self::$Op(op) => op.each(f),)*
                    Self::Backward(op) => panic!("{} is a derivative, which nothing records again", op.name()),
                }
            }

            /// Weights of derivatives are left out.
            fn each_weight(&mut self, f: &mut dyn FnMut(&mut Weight)) {
                match self {
                    $(Self::$Op(op) => op.each_weight(f),)*
                    Self::Backward(_) => {}
                }
            }
        }

        parameters_of! { Op: $($Op,)* Backward, }
        parameters_of! { Backward: $($Back,)* }
        lowering! { Op: $($Op,)* Backward, }
        lowering! { Backward: $($Back,)* }
        lowering! { Lowered: Op, $($Prim,)* $($Fused,)* Own, }

        $(impl From<crate::$op_family::$op::$Op> for Op {
            fn from(op: crate::$op_family::$op::$Op) -> Self {
                Self::$Op(op)
            }
        })*

        $(impl From<crate::$back_family::$back::$Back> for Op {
            fn from(op: crate::$back_family::$back::$Back) -> Self {
                Self::Backward(op.into())
            }
        })*

        $(impl From<crate::$back_family::$back::$Back> for Backward {
            fn from(op: crate::$back_family::$back::$Back) -> Self {
                Self::$Back(op)
            }
        })*

        $(impl From<crate::$fused_family::$fused::$Fused> for Lowered {
            fn from(op: crate::$fused_family::$fused::$Fused) -> Self {
                Self::$Fused(op)
            }
        })*

        from_operations! { $($op_family $op $Op,)* $($back_family $back $Back,)* }

        $(impl From<crate::$prim_family::$prim::$Prim> for Primitive {
            fn from(op: crate::$prim_family::$prim::$Prim) -> Self {
                Self::$Prim(op)
            }
        })*

        impl From<Primitive> for Lowered {
            fn from(part: Primitive) -> Self {
                match part {
                    Primitive::Op(Op::Matmul(op)) => Self::Product((&op).into()),
                    Primitive::Op(op) => Self::Op(op),
                    $(Primitive::$Prim(op) => Self::$Prim(op),)*
                    Primitive::AttentionFlash(flash) => Self::Op(flash.of.into()),
                    Primitive::Own(op) => Self::Own(op),
                }
            }
        }
    };
}

/// Any recorded operation is a primitive.
macro_rules! from_operations {
    ($($family:ident $op:ident $Op:ident,)*) => {
        $(impl From<crate::$family::$op::$Op> for Primitive {
            fn from(op: crate::$family::$op::$Op) -> Self {
                Self::Op(op.into())
            }
        })*
    };
}

/// An enum of operations is an operation.
macro_rules! operation {
    ($of:ident: $($name:ident,)*) => {
        impl Operation for $of {
            fn io(&self) -> Io {
                match self { $(Self::$name(op) => op.io(),)* }
            }

            fn work(&self, counts: Counts) -> Work {
                match self { $(Self::$name(op) => op.work(counts),)* }
            }
        }
    };
}

/// An enum of operations with oracles has an oracle.
macro_rules! reference {
    ($of:ident: $($name:ident,)*) => {
        impl Reference for $of {
            fn reference(&self, host: &mut Host<'_>) {
                match self { $(Self::$name(op) => op.reference(host),)* }
            }

            fn in_turns<'a>(&'a self, host: &'a mut Host<'_>) -> BoxFuture<'a, ()> {
                match self { $(Self::$name(op) => op.in_turns(host),)* }
            }
        }
    };
}

/// An enum of operations with parameters has their parameters.
macro_rules! parameters_of {
    ($of:ident: $($name:ident,)*) => {
        #[cfg(feature = "testing")]
        impl Parameters for $of {
            fn wrong(&self) -> Vec<(&'static str, Self)> {
                match self {
                    $(Self::$name(op) => op.wrong().into_iter().map(|(name, op)| (name, op.into())).collect(),)*
                }
            }
        }
    };
}

/// An enum of operations with kernels has kernels.
macro_rules! lowering {
    ($of:ident: $($name:ident,)*) => {
        impl Lowering for $of {
            fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
                match self { $(Self::$name(op) => op.lower(cx),)* }
            }
        }
    };
}

impl From<Backward> for Op {
    fn from(op: Backward) -> Self {
        Self::Backward(op)
    }
}

impl From<Op> for Primitive {
    fn from(op: Op) -> Self {
        Self::Op(op)
    }
}

impl From<Own> for Primitive {
    fn from(op: Own) -> Self {
        Self::Own(op)
    }
}

impl From<AttentionFlash> for Primitive {
    fn from(op: AttentionFlash) -> Self {
        Self::AttentionFlash(op)
    }
}

impl From<Product> for Lowered {
    fn from(op: Product) -> Self {
        Self::Product(op)
    }
}

gather! { [elementwise sampling norm matmul attention experts training] {} {} {} {} }

impl Op {
    /// Passes every tensor that the operation reads or makes to `f`, which may replace it.
    ///
    /// # Panics
    /// For an operation of a derivative.
    pub fn values(&mut self, f: &mut dyn FnMut(&mut Tensor)) {
        self.each(f);
    }

    /// Passes every weight that the operation reads to `f`, which may replace it; weights of
    /// derivatives are left out.
    pub fn each_weight(&mut self, f: &mut dyn FnMut(&mut Weight)) {
        Values::each_weight(self, f);
    }

    /// The weights that the operation reads, except those of derivatives.
    #[must_use]
    pub fn weights(&self) -> Vec<Weight> {
        let mut weights = vec![];
        self.clone().each_weight(&mut |w| weights.push(*w));
        weights
    }
}

/// A recording of one step of a model.
pub type Recorder = record::Recorder<Op>;

impl Recorder {
    /// Whether rows choose experts. The rows of a step then do not share all weights.
    #[must_use]
    pub fn chooses_experts(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node.op, Op::Route(_)))
    }
}

/// One operation of a plan: how a device computes it, and what it computes.
#[derive(Clone, Debug)]
pub struct Node {
    pub op: Lowered,
    /// The operations whose work it does, in order. Their oracles, run in this order, are its
    /// oracle: they round where it rounds.
    pub parts: Vec<Primitive>,
    pub stage: Stage,
}

impl Node {
    /// An operation with a single part.
    pub fn of(part: impl Into<Primitive>, stage: Stage) -> Self {
        let part = part.into();
        Self { op: part.clone().into(), parts: vec![part], stage }
    }
}

/// Every kernel, by name. A test in `tests/contract.rs` compares the list with the sources.
#[must_use]
pub fn kernels() -> Vec<&'static Kernel> {
    let mut all = [
        crate::elementwise::KERNELS,
        crate::sampling::KERNELS,
        crate::norm::KERNELS,
        crate::matmul::KERNELS,
        crate::attention::KERNELS,
        crate::experts::KERNELS,
        crate::training::KERNELS,
    ]
    .concat();
    all.sort_unstable_by_key(|kernel| kernel.name);
    all
}

/// Every variant of every kernel.
#[cfg_attr(not(feature = "testing"), expect(dead_code, reason = "only tests and `xtask` list kernels"))]
pub fn variants() -> impl Iterator<Item = &'static Variant> {
    kernels().into_iter().flat_map(|kernel| kernel.variants).copied()
}
