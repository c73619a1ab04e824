import sys,os,numpy as np
from PIL import Image
src,dst=sys.argv[1:3]; os.makedirs(dst,exist_ok=True)
for i,f in enumerate(sorted(os.listdir(src))):
    if not f.endswith('.jpg'): continue
    im=Image.open(os.path.join(src,f)).convert('RGB').resize((4000,3000),Image.BICUBIC)
    a=np.asarray(im).astype(np.int16); rng=np.random.default_rng(i)
    a+=rng.integers(-8,8,a.shape,dtype=np.int16)
    Image.fromarray(a.clip(0,255).astype(np.uint8)).save(os.path.join(dst,f),quality=90)
