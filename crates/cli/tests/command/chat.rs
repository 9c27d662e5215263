//! The chat, at a pseudo-terminal.

mod commands;
mod typing;

use crate::tiny::{self, Model};
use crate::{lora, weft};
use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// A program at a pseudo-terminal: its output so far, and a way to type.
struct Terminal {
    child: Child,
    keys: File,
    output: Receiver<Vec<u8>>,
    seen: String,
    /// Tells the thread that reads the screen to stop.
    closing: Arc<AtomicBool>,
    _state: tempfile::TempDir,
}

impl Terminal {
    fn start(words: &[&str]) -> Self {
        Self::start_with(words, &[])
    }

    /// The same with these environment variables.
    fn start_with(words: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::start_at(120, words, environment)
    }

    /// The same at a terminal of so many columns.
    fn start_at(columns: u16, words: &[&str], environment: &[(&str, &str)]) -> Self {
        let size = Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(Some(&size), None).unwrap();
        // These copies are closed on exec. Otherwise the program would keep its own terminal open.
        let (slave, keys) = (pty.slave.try_clone().unwrap(), File::from(pty.master.try_clone().unwrap()));
        drop(pty);
        let end = || Stdio::from(slave.try_clone().unwrap());
        let state = tempfile::tempdir().unwrap();
        let mut command = weft(words);
        command.stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm").env("XDG_STATE_HOME", state.path());
        command.envs(environment.iter().copied());
        let child = command.spawn().unwrap();
        drop(command);
        drop(slave);
        let mut screen = keys.try_clone().unwrap();
        let (send, output) = channel();
        let closing = Arc::new(AtomicBool::new(false));
        let closed = Arc::clone(&closing);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = screen.read(&mut buffer) {
                if send.send(buffer[..n].to_vec()).is_err() || closed.load(Ordering::SeqCst) {
                    return;
                }
            }
        });
        Self { child, keys, output, seen: String::new(), closing, _state: state }
    }

    /// Waits until the screen has shown `text`, and drops the output up to its end.
    #[track_caller]
    fn expect(&mut self, text: &str) {
        self.until(text);
    }

    /// The same; returns the output before `text`.
    #[track_caller]
    fn until(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.seen.find(text) {
                let before = self.seen[..at].to_string();
                self.seen.drain(..at + text.len());
                return before;
            }
            match self.output.recv_timeout(Duration::from_secs(20)) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("{text:?} never came: {:?}", self.seen),
            }
        }
    }

    fn keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line at the next prompt, and waits for an answer.
    #[track_caller]
    fn says(&mut self, typed: &str, said: &str) {
        self.expect("> ");
        self.keys(&format!("{typed}\r"));
        self.expect(said);
    }

    /// Leaves the chat at the next prompt.
    #[track_caller]
    fn leave(mut self) {
        self.says("/exit", "");
        assert_eq!(self.exit(), Some(0));
    }

    /// Closes the program's terminal, as a closed window or a lost connection does. Returns the
    /// exit code, or `None` if a signal killed the program.
    fn hang_up(self) -> Option<i32> {
        let Self { mut child, mut keys, output, closing, _state, .. } = self;
        closing.store(true, Ordering::SeqCst);
        // The echo of the key wakes the thread that reads the screen.
        keys.write_all(b"x").unwrap();
        while output.recv_timeout(Duration::from_secs(20)).is_ok() {}
        drop(keys);
        kill(Pid::from_raw(child.id() as i32), Signal::SIGHUP).unwrap();
        child.wait().unwrap().code()
    }

    fn exit(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

#[test]
fn a_chat_remembers_and_ctrl_d_leaves() {
    let mut chat = Terminal::start(&["run", "--device", "cpu"]);
    chat.expect("> ");
    chat.keys("Where does Wren live?\r");
    chat.expect("Wren lives in Windle.");
    chat.expect("> ");
    chat.keys("/help\r");
    chat.expect("/reset");
    chat.expect("> ");
    chat.keys("/reset\r");
    chat.expect("forgotten");
    chat.expect("> ");
    chat.keys("\u{4}");
    assert_eq!(chat.exit(), Some(0));
}

#[test]
fn ctrl_c_takes_back_a_line_and_twice_at_an_empty_one_leaves() {
    let mut chat = Terminal::start(&["run", "--device", "cpu"]);
    chat.expect("> ");
    chat.keys("\u{3}");
    chat.expect("Ctrl-C again to leave");
    chat.expect("> ");
    chat.keys("half a question\u{3}What is 3 + 4?\r");
    chat.expect("3 + 4 = 7.");
    chat.expect("> ");
    chat.keys("\u{3}");
    chat.expect("Ctrl-C again to leave");
    chat.expect("> ");
    chat.keys("\u{3}");
    assert_eq!(chat.exit(), Some(130));
}

#[test]
fn ctrl_c_stops_the_answer_and_not_the_chat() {
    let model = Model::new(&tiny::builder(0.5));
    let mut chat = Terminal::start(&["run", model.path(), "--device", "cpu", "--ctx", "200000", "--temp", "0"]);
    chat.expect("> ");
    chat.keys("ab\r");
    // The echo of the line comes first, then an answer that never ends.
    chat.expect("\n");
    std::thread::sleep(Duration::from_millis(500));
    kill(Pid::from_raw(chat.child.id() as i32), Signal::SIGINT).unwrap();
    chat.expect("[stopped]");
    chat.expect("> ");
    chat.keys("/exit\r");
    assert_eq!(chat.exit(), Some(0));
}

/// Whether a terminal shows what is typed.
fn echoes(terminal: &File) -> bool {
    nix::sys::termios::tcgetattr(terminal).unwrap().local_flags.contains(nix::sys::termios::LocalFlags::ECHO)
}

#[test]
fn sigterm_at_the_prompt_saves_and_gives_the_terminal_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("talk.weft").to_str().unwrap().to_string();
    let mut chat = Terminal::start(&["run", "--device", "cpu", "--save-session", &file]);
    chat.expect("> ");
    chat.keys("Where does Wren live?\r");
    chat.expect("Wren lives in Windle.");
    chat.expect("> ");
    assert!(!echoes(&chat.keys), "lines are being edited");
    let terminal = chat.keys.try_clone().unwrap();
    kill(Pid::from_raw(chat.child.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(chat.exit(), Some(143));
    assert!(echoes(&terminal));
    assert!(std::path::Path::new(&file).exists());
}

#[test]
fn sigterm_in_an_answer_ends_the_chat_and_not_only_the_answer() {
    let model = Model::new(&tiny::builder(0.5));
    let mut chat = Terminal::start(&["run", model.path(), "--device", "cpu", "--ctx", "200000", "--temp", "0"]);
    chat.expect("> ");
    chat.keys("ab\r");
    chat.expect("\n");
    std::thread::sleep(Duration::from_millis(500));
    kill(Pid::from_raw(chat.child.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(chat.exit(), Some(143));
}

#[test]
fn adapters_come_are_scaled_and_go_in_a_chat() {
    let model = Model::new(&tiny::builder(0.5));
    let adapter = lora::gguf(&model, "my adapter.gguf", 32);
    let mut chat = Terminal::start(&["run", model.path(), "--device", "cpu", "--temp", "0", "-n", "4"]);
    chat.says("/lora", "no adapters; /lora add FILE[:SCALE]");
    chat.says(&format!("/lora add {adapter}:0.5"), "my adapter.gguf times 0.5 (changes 1 matrix, 512 B)");
    chat.says(&format!("/lora add {adapter}"), "is adapter 1 already, times 0.5; /lora scale 1 X changes its scale");
    chat.says(&format!("/lora add {}", model.beside("./my adapter.gguf")), "is adapter 1 already");
    chat.says("ab", "\n");
    chat.says("/lora scale 1 2", "times 2 (changes 1 matrix");
    chat.says("/lora scale 2 2", "no adapter \"2\"; there is 1");
    chat.says("/lora scale 1 nan", "X must be a finite number");
    chat.says("/lora add none.gguf", "none.gguf: no such adapter");
    chat.says("/lora list", "1  ");
    chat.says("/lora mend", "say /lora, /lora add FILE[:SCALE]");
    chat.says("/lora remove 1", "no adapters");
    chat.leave();
}

#[test]
fn an_error_ends_the_turn_and_not_the_chat() {
    let mut chat = Terminal::start(&["run", "--device", "cpu", "--ctx", "30"]);
    chat.expect("> ");
    chat.keys(
        "This question has far more tokens than a context of thirty positions could ever hold, however it is read.\r",
    );
    chat.expect("the context is full: it has 30 positions, and ");
    chat.expect(" are needed; /reset forgets the conversation, /set ctx N enlarges it\r\n");
    chat.expect("> ");
    chat.keys("What is 3 + 4?\r");
    chat.expect("3 + 4 = 7.");
    chat.keys("/exit\r");
    assert_eq!(chat.exit(), Some(0));
}

/// A chat of two questions on a GPU, which loses its device in the answer to the second. Returns
/// the answer that the saved conversation gives to a third question.
fn lost_and_found(lose_at: Option<&str>) -> serde_json::Value {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("talk.weft").to_str().unwrap().to_string();
    let environment: Vec<_> = lose_at.iter().map(|step| ("WEFT_TEST_LOSE_AT_STEP", *step)).collect();
    let mut chat =
        Terminal::start_with(&["run", "--device", "gpu", "--temp", "0", "--save-session", &file], &environment);
    chat.expect("> ");
    chat.keys("What is 3 + 4?\r");
    chat.expect("3 + 4 = 7.");
    chat.expect("> ");
    if lose_at.is_some() {
        chat.keys("Where does Wren live?\r");
        chat.expect("weft: the GPU device was lost in ");
        chat.expect("; the answer is dropped: ask again, and the device is opened again\r\n");
        chat.expect("> ");
    }
    chat.keys("Where does Wren live?\r");
    chat.expect("Wren lives in Windle.");
    chat.expect("> ");
    chat.keys("/exit\r");
    assert_eq!(chat.exit(), Some(0));
    let next = ["run", "--device", "cpu", "--temp", "0", "--json", "--load-session", &file, "-p", "What is 2 + 6?"];
    crate::run(&next).json()
}

#[test]
fn a_lost_device_is_opened_again_and_the_conversation_goes_on() {
    let answers = [None, Some("16")].map(lost_and_found);
    for field in ["text", "prompt_tokens"] {
        assert_eq!(answers[0][field], answers[1][field], "{field}");
    }
}

#[test]
fn a_call_is_shown_and_answered_with_tool() {
    let model = crate::tools::saying(
        "<tool_call>{\"name\": \"look\"}</tool_call>",
        "{{ messages[-1].role }}:{{ messages[-1].name }}:{{ messages | length }}{% for message in messages %}\
         {% for call in message.tool_calls or [] %}{{ call.function.name }}{{ call.function.arguments | tojson }}{% endfor %}\
         {% endfor %}<tool_call>",
    );
    let mut chat = Terminal::start(&["run", model.path(), "--device", "cpu", "--temp", "0", "-n", "1", "--stats"]);
    chat.expect("> ");
    chat.keys("/tool 42\r");
    chat.expect("no tool call waits for an answer");
    chat.expect("> ");
    chat.keys("look\r");
    chat.expect("{\"name\":\"look\",\"arguments\":{}}");
    // The prompt is user::1<tool_call>, one token per byte.
    chat.expect("prompt 18 tokens");
    chat.expect("> ");
    chat.keys("/tool 42\r");
    chat.expect("{\"name\":\"look\",\"arguments\":{}}");
    // The prompt is tool:look:3look{}<tool_call>, one token per byte.
    chat.expect("prompt 28 tokens");
    chat.keys("/exit\r");
    assert_eq!(chat.exit(), Some(0));
}

#[test]
fn a_killed_terminal_leaves_the_history() {
    let mut chat = Terminal::start(&["run", "--device", "cpu"]);
    chat.expect("> ");
    chat.keys("What is 3 + 4?\r");
    chat.expect("3 + 4 = 7.");
    kill(Pid::from_raw(chat.child.id() as i32), Signal::SIGKILL).unwrap();
    chat.child.wait().unwrap();
    let history = std::fs::read_to_string(chat._state.path().join("weft/history")).unwrap();
    assert!(history.contains("What is 3 + 4?"), "{history}");
}

#[test]
fn a_closed_terminal_leaves_the_conversation_where_it_was_to_be_saved() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("talk.weft").to_str().unwrap().to_string();
    let mut chat = Terminal::start(&["run", "--device", "cpu", "--save-session", &file]);
    chat.expect("> ");
    chat.keys("Where does Wren live?\r");
    chat.expect("Wren lives in Windle.");
    chat.expect("> ");
    assert!(chat.hang_up().is_some(), "the hang-up kills it");
    let next =
        crate::run(&["run", "--device", "cpu", "--json", "--load-session", &file, "-p", "What is 3 + 4?"]).json();
    let alone = crate::run(&["run", "--device", "cpu", "--json", "-p", "What is 3 + 4?"]).json();
    let tokens = |answer: &serde_json::Value| answer["prompt_tokens"].as_u64().unwrap();
    assert!(tokens(&next) > tokens(&alone) + 10, "{next} {alone}");
}
