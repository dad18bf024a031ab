import sys; sys.argv=['x','none']
exec(open('/work/w/scr/est/bench.py').read().split("which =")[0])
m=build("gpt2"); ids = torch.zeros(1, 128, dtype=torch.int64); inp = {"input_ids": ids, "labels": ids}
a=estimate(m,inp,batch=4); print(a.work==count_work(m,inp,batch=4,precision="fp16"), a.memory==estimate_memory(m,inp,batch=4,precision="fp16"))
a=estimate(m,inp,batch=4,training=False); print(a.work==count_work(m,inp,batch=4,precision="fp16",training=False))
