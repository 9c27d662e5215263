//! Lines that are typed and pasted, and how answers look.

use super::Terminal;
use crate::tools::saying;
use std::time::Duration;

/// The screen shows the number of bytes of each message that differ from the message before.
fn counting(columns: u16) -> (crate::tiny::Model, Terminal) {
    let model = saying("xx", "{{ messages[-1].content }}");
    let words = ["run", model.path(), "--device", "cpu", "-n", "1", "--stats", "--temp", "0"];
    let chat = Terminal::start_at(columns, &words, &[]);
    (model, chat)
}

#[test]
fn quotes_and_backslashes_make_messages_of_several_lines() {
    let (_model, mut chat) = counting(120);
    chat.expect("> ");
    for line in ["\"\"\"ab", "/help", "c"] {
        chat.keys(&format!("{line}\r"));
        chat.expect("  ");
    }
    chat.keys("\"\"\"\r");
    chat.expect("prompt 10 tokens");
    chat.says("\"\"\"/help\"\"\"", "prompt 5 tokens");
    chat.expect("> ");
    chat.keys("ab\\\r");
    chat.expect("  ");
    chat.keys("c\r");
    chat.expect("prompt 4 tokens");
    chat.leave();
}

#[test]
fn pasted_lines_are_one_message_with_brackets_and_without() {
    let (_model, mut chat) = counting(120);
    chat.says("one\r/two\rthree", "prompt 14 tokens");
    chat.expect("> ");
    chat.keys("two\rone");
    chat.expect("one");
    std::thread::sleep(Duration::from_millis(200));
    chat.keys("\r");
    chat.expect("prompt 7 tokens");
    chat.expect("> ");
    chat.keys("\u{1b}[200~six\r\rten\u{1b}[201~");
    std::thread::sleep(Duration::from_millis(200));
    chat.keys("\r");
    chat.expect("prompt 8 tokens");
    // More than the editor reads at once, with tabs.
    let lines = vec!["\tlet one = two;"; 150].join("\r");
    chat.says(&lines, &format!("prompt {} tokens", lines.len()));
    chat.leave();
}

#[test]
fn pasted_commands_run_one_after_another() {
    let (_model, mut chat) = counting(120);
    chat.says("/set max-tokens 2\r/set system \"\"\"a\rb\"\"\"\rone\r/two", "max-tokens 2\r\n");
    chat.expect("system \"a\r\nb\"\r\n");
    chat.expect("xxxx\r\n");
    chat.expect("prompt 8 tokens");
    chat.leave();
}

#[test]
fn tab_completes_a_command() {
    let (_model, mut chat) = counting(120);
    chat.expect("> ");
    chat.keys("/ret");
    std::thread::sleep(Duration::from_millis(100));
    chat.keys("\t");
    chat.expect("ry");
    std::thread::sleep(Duration::from_millis(100));
    chat.keys("\r");
    chat.expect("there is no answer yet to ask for again");
    chat.leave();
}

#[test]
fn answers_break_between_words_and_prompts_have_a_color() {
    let words = ["run", "--device", "cpu"];
    let mut chat = Terminal::start_at(16, &words, &[]);
    chat.expect("\u{1b}[1;36m> \u{1b}[0m");
    chat.keys("Where does Wren live?\r");
    chat.expect("Wren lives in \r\nWindle.\r\n");
    chat.says("/set nowordwrap", "\nnowordwrap\r\n");
    chat.says("Where does Wren live?", "Wren lives in Windle.\r\n");
    chat.leave();
    let mut chat = Terminal::start_at(16, &words, &[("NO_COLOR", "1")]);
    chat.expect("> ");
    assert!(!chat.seen.contains("\u{1b}[1;36m"));
    chat.keys("/help\r");
    let shown = chat.until("with a space in front of it.");
    assert!(!shown.contains("36m"), "{shown:?}");
    chat.leave();
}
