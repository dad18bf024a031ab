import sys, time, statistics
sys.path.append('/work/w/venv/networks')
import torch, warnings
from transformers import AutoConfig, AutoModelForCausalLM
from course_utils.estimate import estimate, count_work, estimate_memory
def build(name):
    cfgs = {"gpt2": dict(n_layer=12,n_embd=768,n_head=12), "gpt2-xl-1.2B": dict(n_layer=24,n_embd=2048,n_head=16)}
    c = AutoConfig.for_model("gpt2", **cfgs[name])
    with torch.device("meta"): return AutoModelForCausalLM.from_config(c)
def llama():
    c = AutoConfig.for_model("llama", hidden_size=2048,intermediate_size=8192,num_hidden_layers=16,num_attention_heads=32,num_key_value_heads=8,vocab_size=128256,tie_word_embeddings=True)
    with torch.device("meta"): return AutoModelForCausalLM.from_config(c)
torch.set_num_threads(1)
which = sys.argv[1:] or ["gpt2","gpt2-xl-1.2B","llama1.2B"]
for name in which:
    m = llama() if name.startswith("llama") else build(name)
    ids = torch.zeros(1, 1024, dtype=torch.int64)
    inp = {"input_ids": ids, "labels": ids}
    out={}
    for label, f in {"estimate": lambda: estimate(m, inp, batch=4), "count": lambda: count_work(m, inp, batch=4), "memory": lambda: estimate_memory(m, inp, batch=4)}.items():
        ts=[]
        for _ in range(4 if label=="estimate" else 2):
            a=time.process_time(); f(); ts.append(time.process_time()-a)
        out[label]=(round(ts[0],2), round(statistics.median(ts),2))
    print(name, sum(p.numel() for p in m.parameters())/1e9, out, flush=True)
