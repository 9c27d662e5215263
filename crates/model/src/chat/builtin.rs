//! Templates for files that bring none.

use crate::tokenizer::Tokenizer;

/// A message's text, or that of its parts, through a filter.
macro_rules! content {
    ($filter:literal) => {
        concat!(
            "{% if message.content is string %}{{ message.content",
            $filter,
            " }}{% else %}{% for part in message.content or [] %}{{ part.text",
            $filter,
            " }}{% endfor %}{% endif %}",
        )
    };
}

/// `<|im_start|>role`, the text, `<|im_end|>`: Qwen and many others.
const CHATML: &str = concat!(
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' }}",
    content!(""),
    "{{ '<|im_end|>\\n' }}{% endfor %}",
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
);

/// Gemma 1 to 3 know the roles user and model; what the system says opens the first turn.
const GEMMA: &str = concat!(
    "{{ bos_token }}{% set ns = namespace(system='') %}{% for message in messages %}",
    "{% if message.role == 'system' %}{% set ns.system %}",
    content!(" | trim"),
    "{{ '\\n\\n' }}{% endset %}{% else %}",
    "{{ '<start_of_turn>' + ('model' if message.role == 'assistant' else message.role) + '\\n' + ns.system }}",
    "{% set ns.system = '' %}",
    content!(" | trim"),
    "{{ '<end_of_turn>\\n' }}{% endif %}{% endfor %}",
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}",
);

/// Gemma 4 has system turns, which say whether to think and declare the tools; calls and results
/// stay in the model's turn. Values are written as `answer/gemma.rs` reads them, schemas with their
/// types in capitals.
const GEMMA4: &str = concat!(
    "{% macro value(v, schema=false) %}",
    "{% if v is string %}{{ '<|\"|>' + v + '<|\"|>' }}",
    "{% elif v is boolean %}{{ 'true' if v else 'false' }}",
    "{% elif v is none %}null",
    "{% elif v is mapping %}{{ '{' }}{% for key, item in v | dictsort %}",
    "{{ key + ':' + value(item | upper if schema and key == 'type' and item is string else item, schema) }}",
    "{{ ',' if not loop.last }}{% endfor %}{{ '}' }}",
    "{% elif v is sequence %}{{ '[' }}{% for item in v %}{{ value(item, schema) }}{{ ',' if not loop.last }}{% endfor %}{{ ']' }}",
    "{% else %}{{ v }}{% endif %}{% endmacro %}",
    "{{ bos_token }}{% set system = messages and messages[0].role == 'system' %}",
    "{% if system or tools or enable_thinking %}{{ '<|turn>system\n' + ('<|think|>\n' if enable_thinking else '') }}",
    "{% for message in messages[:1] if system %}",
    content!(" | trim"),
    "{% endfor %}",
    "{% for tool in tools or [] %}{% set f = tool.function if tool.function is defined else tool %}",
    "{{ '<|tool>declaration:' + f.name + '{description:' + value(f.description or '') }}",
    "{{ ',parameters:' + value(f.parameters, true) if f.parameters }}{{ '}<tool|>' }}{% endfor %}",
    "{{ '<turn|>\n' }}{% endif %}",
    "{% set ns = namespace(open=false) %}",
    "{% for message in messages %}{% if not (loop.first and system) %}",
    "{% if message.role == 'tool' %}",
    "{{ '<|tool_response>response:' + (message.name or 'unknown') + '{value:' + value(message.content) + '}<tool_response|>' }}",
    "{% else %}{% set role = 'model' if message.role == 'assistant' else message.role %}",
    "{% if not (ns.open and role == 'model') %}{{ ('<turn|>\n' if ns.open else '') + '<|turn>' + role + '\n' }}{% endif %}",
    content!(" | trim"),
    "{% for call in message.tool_calls or [] %}",
    "{{ '<|tool_call>call:' + call.function.name + value(call.function.arguments) + '<tool_call|>' }}{% endfor %}",
    "{% set ns.open = message.tool_calls | length > 0 if message.tool_calls else false %}",
    "{{ '<turn|>\n' if not ns.open }}{% endif %}{% endif %}{% endfor %}",
    "{% if add_generation_prompt and not ns.open %}{{ '<|turn>model\n' }}{% endif %}",
);

/// The template whose turns `tokenizer` has tokens for; ChatML where it has none.
pub(super) fn for_vocabulary(tokenizer: &Tokenizer) -> &'static str {
    if tokenizer.token_to_id("<|turn>").is_some() {
        GEMMA4
    } else if tokenizer.token_to_id("<start_of_turn>").is_some() {
        GEMMA
    } else {
        CHATML
    }
}
