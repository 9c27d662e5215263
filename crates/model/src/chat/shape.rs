//! The shape of a template, from its tokens alone: the engine's parser and code generator recurse,
//! so depth is bounded before them.

use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;

use super::limits::{LEVELS, TOO_DEEP};
use super::{ChatError, limits};

/// Bytes that the constants of one tag may become: the engine computes constants while it compiles.
const CONSTANT_BYTES: u64 = 1 << 20;
/// Bytes of a name.
const NAME_BYTES: usize = 256;

/// The largest depth of blocks, brackets and operators in `source`.
///
/// # Errors
/// [`ChatError::Limit`]; [`ChatError::Unbounded`] for constants that repeat text too often.
pub(super) fn check(source: &str, syntax: &SyntaxConfig) -> Result<usize, ChatError> {
    limits::check_length(source)?;
    let mut shape = Shape::default();
    for token in tokenize(source, false, syntax.clone()) {
        // The parser meets the same error, and says where it is.
        let Ok((token, _)) = token else { break };
        shape.take(&token)?;
    }
    Ok(shape.deepest)
}

/// A block that is open.
struct Block {
    /// Whether it is a loop's body.
    loops: bool,
    /// Whether `break` leaves it as it should: the engine forgets the frames and captures of other
    /// blocks.
    left: bool,
    /// Levels that it adds: one, and one more for each `elif`.
    levels: usize,
}

#[derive(Default)]
struct Shape {
    /// Operators so far in each bracket that is open, since its last comma; the first entry is the
    /// tag's.
    chains: Vec<usize>,
    blocks: Vec<Block>,
    deepest: usize,
    /// Whether the next word is the tag's keyword.
    opens: bool,
    /// Whether the tag is a `set` that has assigned nothing so far: then it opens a block.
    sets: bool,
    /// Whether an operand has just ended, so that a bracket is a call or an index.
    operand: bool,
    constants: Constants,
}

/// What the constants of a tag could be folded to.
#[derive(Default)]
struct Constants {
    bytes: u64,
    largest: u64,
    products: u32,
    powers: bool,
    /// Whether the last token may end a constant.
    ended: bool,
    /// Whether the last token multiplies what may be a constant, or raises it to a power.
    multiplies: bool,
    raises: bool,
}

impl Constants {
    /// Counts products whose two sides may be constants: the engine computes no other while it
    /// compiles.
    fn take(&mut self, token: &Token) {
        use Token::*;
        let word = matches!(token, Ident("true" | "false" | "none" | "True" | "False" | "None"));
        let value = word || matches!(token, Int(_) | Int128(_) | Float(_) | Str(_) | String(_));
        let begins = value || matches!(token, ParenOpen | BracketOpen | BraceOpen | Minus | Plus);
        let (multiplies, raises) = (std::mem::take(&mut self.multiplies), std::mem::take(&mut self.raises));
        self.products += u32::from(begins && (multiplies || raises));
        self.powers |= begins && raises;
        let ended =
            std::mem::replace(&mut self.ended, value || matches!(token, ParenClose | BracketClose | BraceClose));
        self.multiplies = ended && matches!(token, Mul);
        self.raises = ended && matches!(token, Pow);
    }

    fn check(&self) -> Result<(), ChatError> {
        // Up to 64 terms are added to a factor.
        let factor = self.largest.saturating_mul(LEVELS as u64).max(1).saturating_pow(self.products);
        let bounded = self.products == 0 || (!self.powers && self.bytes.saturating_mul(factor) <= CONSTANT_BYTES);
        if self.bytes == 0 || bounded {
            Ok(())
        } else {
            Err(ChatError::Unbounded { what: "text multiplied by large numbers" })
        }
    }
}

impl Shape {
    fn take(&mut self, token: &Token) -> Result<(), ChatError> {
        use Token::*;
        let operand = std::mem::take(&mut self.operand);
        let opens = std::mem::take(&mut self.opens);
        self.constants.take(token);
        match token {
            TemplateData(_) => {}
            VariableStart | BlockStart => {
                self.chains = vec![0];
                self.constants = Constants::default();
                self.opens = matches!(token, BlockStart);
            }
            VariableEnd | BlockEnd => {
                self.constants.check()?;
                self.chains.clear();
                if std::mem::take(&mut self.sets) {
                    self.open("set");
                }
            }
            ParenOpen | BracketOpen | BraceOpen => {
                // A call or an index is an operator of its chain.
                self.chain(usize::from(operand));
                self.constants.bytes = self.constants.bytes.saturating_add(32);
                self.chains.push(1);
            }
            ParenClose | BracketClose | BraceClose => {
                self.chains.pop();
                self.operand = true;
            }
            Comma => {
                // The elements of a list stand side by side.
                if let Some(chain) = self.chains.last_mut() {
                    *chain = 1;
                }
            }
            Colon => {}
            Assign => self.sets = false,
            // The engine looks names up by all of their letters.
            Ident(word) if word.len() > NAME_BYTES => {
                return Err(ChatError::Unbounded { what: "a name of more than 256 bytes" });
            }
            Ident(word) => self.word(word, opens)?,
            Str(text) => self.text(text),
            String(text) => self.text(text),
            Int(number) => self.number(*number),
            Int128(_) => self.number(u64::MAX),
            Float(_) => self.operand = true,
            Mul | Pow | Plus | Minus | Div | FloorDiv | Mod | Dot | Tilde | Pipe | Eq | Ne | Gt | Gte | Lt | Lte => {
                self.chain(1)
            }
        }
        let depth = self.blocks.iter().map(|block| block.levels).chain(self.chains.iter().copied()).sum();
        self.deepest = self.deepest.max(depth);
        if depth > LEVELS { Err(TOO_DEEP.into()) } else { Ok(()) }
    }

    fn word(&mut self, word: &str, opens: bool) -> Result<(), ChatError> {
        match word {
            "set" if opens => self.sets = true,
            "for" | "if" | "macro" | "call" | "filter" | "with" | "autoescape" | "block" if opens => self.open(word),
            "elif" if opens => {
                if let Some(block) = self.blocks.last_mut() {
                    block.levels += 1;
                }
            }
            _ if opens && word.starts_with("end") => drop(self.blocks.pop()),
            "else" if opens => {
                if let Some(block) = self.blocks.last_mut() {
                    block.left |= std::mem::take(&mut block.loops);
                }
            }
            "break" | "continue" if opens => {
                let around = self.blocks.iter().rev().find(|block| !block.left);
                if !around.is_some_and(|block| block.loops) {
                    return Err(ChatError::Unbounded {
                        what: "break or continue across with, set, filter, call or macro",
                    });
                }
            }
            "not" | "and" | "or" | "if" | "else" | "is" | "in" => self.chain(1),
            _ => self.operand = true,
        }
        Ok(())
    }

    fn open(&mut self, word: &str) {
        self.blocks.push(Block { loops: word == "for", left: word == "if", levels: 1 });
    }

    fn chain(&mut self, operators: usize) {
        if let Some(chain) = self.chains.last_mut() {
            *chain += operators;
        }
    }

    fn text(&mut self, text: &str) {
        self.constants.bytes = self.constants.bytes.saturating_add(text.len() as u64);
        self.operand = true;
    }

    fn number(&mut self, number: u64) {
        self.constants.largest = self.constants.largest.max(number);
        self.operand = true;
    }
}
