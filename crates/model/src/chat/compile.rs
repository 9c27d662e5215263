//! A template's instructions, each with a check before it that counts what it is about to make.
//!
//! The engine counts instructions, not bytes: forty times `s ~ s` make a tebibyte. So the engine's
//! own instructions are rewritten: before each that can make, walk or compare values stand three
//! that hand its operands to [`CHECK`], the filter of `charge.rs`, and put them back. The engine
//! then computes with its own operators, so a result is what it always was. Behind an instruction
//! whose result is lazy stands [`WHOLE`], which makes a list of it. Jumps lead to the checks.

use minijinja::Value;
use minijinja::machinery::{CodeGenerator, Instruction, Instructions, parse};
use minijinja::syntax::SyntaxConfig;

use super::{ChatError, shape};

/// The filter that counts operands. No template can spell it.
pub(super) const CHECK: &str = "\0check";
/// The filter that makes a list of what is lazy.
pub(super) const WHOLE: &str = "\0whole";
/// The filter that stands for the operator `%`, which the engine has for numbers only.
pub(super) const PERCENT: &str = "\0percent";
/// What the checks call the operators.
pub(super) const OPERATORS: [&str; 11] = ["+", "*", "%", "~", "==", "in", "[]", "[:]", "set", "[", "for"];
/// Operands of an instruction at most: they become arguments of a filter.
const MOST_OPERANDS: usize = 60_000;
/// No place among the filters that the engine remembers.
const NO_LOCAL: u8 = !0;

/// Compiles `source`.
///
/// # Errors
/// [`ChatError::Limit`], [`ChatError::Syntax`], and [`ChatError::Unbounded`] for what has no bound.
pub(super) fn compile<'s>(
    name: &'s str,
    source: &'s str,
    syntax: &SyntaxConfig,
) -> Result<Instructions<'s>, ChatError> {
    shape::check(source, syntax)?;
    let tree = parse(source, name, syntax.clone()).map_err(ChatError::from_syntax)?;
    let mut generator = CodeGenerator::new(name, source);
    generator.compile_stmt(&tree);
    let (instructions, blocks) = generator.finish();
    if !blocks.is_empty() {
        return Err(ChatError::Unbounded { what: "blocks of template inheritance" });
    }
    checked(name, source, &instructions)
}

fn checked<'s>(name: &'s str, source: &'s str, from: &Instructions<'s>) -> Result<Instructions<'s>, ChatError> {
    let mut to = Instructions::new(name, source);
    // Where each instruction of `from` begins in `to`; one more for the end.
    let mut places = vec![];
    let (mut at, mut end) = (0, 0);
    while let Some(instruction) = from.get(at) {
        // The engine keeps lines as 16 bits.
        let line = from.get_line(at).map_or(0, |line| u16::try_from(line).unwrap_or(u16::MAX));
        let mut add = |instruction| to.add_with_line(instruction, line);
        let (what, operands, lazy) = operands(instruction)?;
        if operands > MOST_OPERANDS {
            return Err(ChatError::Unbounded { what: "a list or mapping of more than 60,000 elements" });
        }
        let mut first = None;
        if operands > 0 {
            first = Some(add(Instruction::LoadConst(Value::from(what))));
            add(Instruction::ApplyFilter(CHECK, Some(operands as u16 + 1), NO_LOCAL));
            add(Instruction::UnpackList(operands));
        }
        let own = match instruction {
            Instruction::EmitRaw(text) => {
                first = Some(add(Instruction::LoadConst(Value::from_safe_string((*text).to_owned()))));
                add(Instruction::Emit)
            }
            Instruction::Rem => add(Instruction::ApplyFilter(PERCENT, Some(2), NO_LOCAL)),
            other => add(other.clone()),
        };
        let last = if lazy { add(Instruction::ApplyFilter(WHOLE, Some(1), NO_LOCAL)) } else { own };
        end = last + 1;
        places.push(first.unwrap_or(own));
        at += 1;
    }
    places.push(end);
    land(&mut to, &places);
    Ok(to)
}

/// Leads jumps to where their targets have come to stand.
fn land(code: &mut Instructions, places: &[u32]) {
    let mut at = 0;
    while let Some(instruction) = code.get_mut(at) {
        match instruction {
            Instruction::Jump(target)
            | Instruction::JumpIfFalse(target)
            | Instruction::JumpIfFalseOrPop(target)
            | Instruction::JumpIfTrueOrPop(target)
            | Instruction::Iterate(target)
            | Instruction::BuildMacro(_, target, _) => *target = places[*target as usize],
            _ => {}
        }
        at += 1;
    }
}

/// What an instruction is called among the checks, how many operands it has to check (none where it
/// makes nothing), and whether its result may be lazy. The match is whole: a new instruction of the
/// engine does not compile until it is answered.
fn operands(instruction: &Instruction) -> Result<(String, usize, bool), ChatError> {
    use Instruction::*;
    let refused = |what| Err(ChatError::Unbounded { what });
    let counted =
        |count: &Option<u16>| count.map(usize::from).ok_or(ChatError::Unbounded { what: "arguments by * or **" });
    let (what, operands, lazy) = match instruction {
        Add => ("+", 2, true),
        Mul => ("*", 2, true),
        Rem => ("%", 2, false),
        StringConcat => ("~", 2, false),
        Eq | Ne | Gt | Gte | Lt | Lte | CompareAndPreserve(_) => ("==", 2, false),
        In => ("in", 2, false),
        GetItem => ("[]", 2, false),
        Slice => ("[:]", 4, true),
        SetAttr(_) => ("set", 2, false),
        BuildList(Some(count)) | BuildTuple(Some(count)) => ("[", *count, false),
        // The elements that a loop's condition has kept.
        BuildList(None) => ("[", 0, true),
        BuildMap(pairs) | BuildKwargs(pairs) => ("[", pairs.saturating_mul(2), false),
        PushLoop(_) | UnpackList(_) => ("for", 1, false),
        FastRecurse => ("[", 1, false),
        ApplyFilter(name, count, _) => return Ok((normal("|", name), counted(count)?, true)),
        PerformTest(name, count, _) => return Ok((normal("?", name), counted(count)?, false)),
        CallFunction(name, count) => return Ok((normal("", name), counted(count)?, true)),
        CallMethod(name, count) => return Ok((normal(".", name), counted(count)?, true)),
        CallObject(count) => return Ok(("call".into(), counted(count)?, true)),
        UnpackLists(_) | BuildTuple(None) | MergeKwargs(_) => return refused("arguments by * or **"),
        PushAutoEscape | PopAutoEscape => return refused("autoescape"),
        CallBlock(_) | FastSuper => return refused("blocks of template inheritance"),
        LoadBlocks => return refused("extends"),
        Include(_) | ExportLocals => return refused("include or import"),
        EmitRaw(_) | Emit | StoreLocal(_) | Lookup(_) | GetAttr(_) | LoadConst(_) | Sub | Div | IntDiv | Pow | Neg
        | Not | PushWith | Iterate(_) | PushDidNotIterate | PopFrame | PopLoopFrame | Jump(_) | JumpIfFalse(_)
        | JumpIfFalseOrPop(_) | JumpIfTrueOrPop(_) | BeginCapture(_) | EndCapture | DupTop | DiscardTop | Swap
        | BuildMacro(..) | Return | IsUndefined | Enclose(_) | GetClosure => ("", 0, false),
    };
    debug_assert!(what.is_empty() || OPERATORS.contains(&what), "{what} has no row in the test of charges");
    Ok((what.to_owned(), operands, lazy))
}

/// A name as the engine looks it up: without white space.
fn normal(before: &str, name: &str) -> String {
    let name = name.chars().filter(|c| !c.is_ascii_whitespace());
    before.chars().chain(name).collect()
}
