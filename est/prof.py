import sys; sys.argv=['x','none']
exec(open('/work/w/scr/est/bench.py').read().split("which =")[0])
import cProfile, pstats
m=build("gpt2-xl-1.2B"); ids = torch.zeros(1, 1024, dtype=torch.int64); inp = {"input_ids": ids, "labels": ids}
estimate(m,inp,batch=4)
p=cProfile.Profile(); p.enable(); estimate(m,inp,batch=4); p.disable()
pstats.Stats(p).sort_stats("cumtime").print_stats(60)
pstats.Stats(p).sort_stats("tottime").print_stats(25)
